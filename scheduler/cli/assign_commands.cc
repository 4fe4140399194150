// windlass assign, unassign and split: ask, then show what came of each command.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <random>
#include <utility>

#include "protocol/base/limits.h"
#include "protocol/crypto/percent_encoding.h"
#include "protocol/crypto/text_encoding.h"
#include "scheduler/cli/app_commands.h"
#include "scheduler/cli/table.h"

namespace windlass::cli {
namespace {

constexpr double kWaitOnceSeconds = 20;  // within what the listener holds a request

// A request that got no answer is sent again under its name, and is done once.
std::string new_id(std::string_view prefix) {
  std::random_device random;
  std::string bytes;
  for (int i = 0; i < 4; ++i) {
    const auto word = random();
    for (unsigned shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(word >> shift & 0xffU);
  }
  return std::string{prefix} + hex_encode(bytes);
}

bool has_outcome(const Json& command) {
  const std::string state = command.text("/state");
  return state == "done" || state == "failed";
}

struct Outcome {
  bool ok = false;
  std::string state;
  std::string reason;
};

Outcome outcome_of(const std::optional<Json>& command) {
  if (!command || !has_outcome(*command))
    return {false, "waiting", "no answer yet; the order stays with the scheduler"};
  if (command->text("/state") == "failed") return {false, "failed", command->text("/failure/reason")};
  if (command->text("/result/payload/ok") == "true") return {true, "ready", {}};
  return {false, "failed", command->text("/result/payload/reason")};
}

struct Awaited {
  Json assignment;
  std::optional<Json> command;
};

// Shows on a terminal how far it is, and gives each command what is left of the time.
std::vector<Awaited> wait_for_all(Admin& admin, const std::string& tenant,
                                  const std::vector<Json>& assignments, std::uint64_t wait_s) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{wait_s};
  const bool shows = ::isatty(STDERR_FILENO) == 1 && !admin.wants_json();
  std::vector<Awaited> all;
  for (const Json& each : assignments) {
    if (shows) std::fprintf(stderr, "\r%zu of %zu workers answered", all.size(), assignments.size());
    const std::chrono::duration<double> left = end - std::chrono::steady_clock::now();
    all.push_back(
        {each, wait_for_command(admin, {tenant, each.text("/command")}, std::max(0.0, left.count()))});
  }
  if (shows) std::fputs("\r\033[K", stderr);
  return all;
}

int show_assignments(const Admin& admin, const std::vector<Awaited>& all, std::string_view done_state) {
  std::string json = "{\"assignments\":[";
  Table table{{"WORKER", "RUNTIME", "CODE", "STATE", "FUNCTIONS", "TOOK", "REASON"}};
  std::size_t failed = 0;
  for (const Awaited& each : all) {
    const Outcome outcome = outcome_of(each.command);
    failed += outcome.ok ? 0U : 1U;
    const std::string state = outcome.ok ? std::string{done_state} : outcome.state;
    std::string functions;
    std::string took;
    if (each.command) {
      for (const Json& name : each.command->list("/result/payload/functions")) {
        functions += (functions.empty() ? "" : ",") + name.text("");
      }
      took = each.command->text("/result/payload/took_ms");
    }
    table.add({each.assignment.text("/worker"), each.assignment.text("/runtime"),
               each.assignment.text("/code_version"), state, functions, took.empty() ? "" : took + " ms",
               outcome.reason});
    json += "{\"worker\":" + json_text(each.assignment.text("/worker")) +
            ",\"runtime\":" + json_text(each.assignment.text("/runtime")) +
            ",\"command\":" + json_text(each.assignment.text("/command")) + ",\"state\":" + json_text(state);
    if (!outcome.reason.empty()) json += ",\"reason\":" + json_text(outcome.reason);
    if (each.command && each.command->has("/result/payload")) {
      json += ",\"result\":" + each.command->raw("/result/payload");
    }
    json += "},";
  }
  if (json.back() == ',') json.pop_back();
  print(admin.wants_json() ? json + "]}\n" : table.text());
  if (failed == 0) return kExitOk;
  complain(std::to_string(failed) + " of " + std::to_string(all.size()) +
           (all.size() == 1 ? " worker" : " workers") + " did not become " + std::string{done_state});
  return kExitRefused;
}

int order_workers(Admin& admin, const AssignOptions& options, std::string_view action,
                  std::string_view done_state) {
  const AppLookup app = find_app(admin, options.app);
  if (!app.name) return app.exit_code;
  std::string body = "{\"id\":" + json_text(options.id.empty() ? new_id("a-") : options.id);
  if (options.workers) body += ",\"workers\":" + std::to_string(*options.workers);
  if (!options.runtime.empty()) body += ",\"runtime\":" + json_text(options.runtime);
  if (!options.code_version.empty()) body += ",\"code_version\":" + json_text(options.code_version);
  if (options.partial) body += ",\"partial\":true";
  body += '}';
  const auto accepted = admin.ask(
      {.method = "POST", .target = "/v1/apps/" + app.name->path() + '/' + std::string{action}, .body = body});
  if (!accepted) return admin.exit_code();
  if (accepted->has("/shortfall")) complain(accepted->text("/shortfall"));
  const std::vector<Json> assignments = accepted->list("/assignments");
  if (!options.no_wait) {
    return show_assignments(admin, wait_for_all(admin, app.name->tenant, assignments, options.wait_s),
                            done_state);
  }
  if (admin.wants_json()) {
    print(admin.body());
    return kExitOk;
  }
  Table table{{"WORKER", "RUNTIME", "CODE", "COMMAND"}};
  for (const Json& each : assignments) {
    table.add({each.text("/worker"), each.text("/runtime"), each.text("/code_version"),
               app.name->tenant + '/' + each.text("/command")});
  }
  print(table.text());
  return kExitOk;
}

}  // namespace

std::optional<Json> wait_for_command(Admin& admin, const Name& name, double wait_s) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>{wait_s};
  for (;;) {
    const std::chrono::duration<double> left = end - std::chrono::steady_clock::now();
    const auto wait =
        milliseconds{static_cast<std::int64_t>(std::clamp(left.count(), 0.0, kWaitOnceSeconds) * 1000)};
    std::string target = "/v1/commands/" + name.path();
    if (wait.count() > 0) target += "?wait_ms=" + std::to_string(wait.count());
    auto command = admin.ask({.target = target, .wait = wait});
    if (!command || has_outcome(*command) || wait.count() == 0) return command;
  }
}

int assign_workers(Admin& admin, const AssignOptions& options) {
  return order_workers(admin, options, "assign", "ready");
}

int unassign_workers(Admin& admin, const AssignOptions& options) {
  return order_workers(admin, options, "unassign", "released");
}

int split_traffic(Admin& admin, const SplitOptions& options) {
  std::string weights;
  for (const std::string& each : options.weights) {
    const std::size_t equals = each.rfind('=');
    const std::string number = equals == std::string::npos ? std::string{} : each.substr(equals + 1);
    unsigned value = 0;
    const auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (equals == 0 || number.empty() || failed != std::errc{} || end != number.data() + number.size()) {
      complain("'" + each + "' is not VERSION=WEIGHT, such as v1=80");
      return kExitUsage;
    }
    weights += (weights.empty() ? "" : ",") + json_text(each.substr(0, equals)) + ':' + std::to_string(value);
  }
  const AppLookup app = find_app(admin, options.app);
  if (!app.name) return app.exit_code;
  const auto accepted = admin.ask({.method = "POST",
                                   .target = "/v1/apps/" + app.name->path() + "/split",
                                   .body = "{\"weights\":{" + weights + "}}"});
  if (!accepted) return admin.exit_code();
  Table table{{"RUNTIME", "STATE", "REASON"}};
  std::string json = "{\"runtimes\":[";
  bool is_fine = true;
  for (const Json& each : accepted->list("/commands")) {
    const auto command =
        wait_for_command(admin, {app.name->tenant, each.text("/id")}, static_cast<double>(options.wait_s));
    const Outcome outcome = outcome_of(command);
    is_fine = is_fine && outcome.ok;
    const std::string state = outcome.ok ? "split" : outcome.state;
    table.add({each.text("/runtime"), state, outcome.reason});
    json += "{\"runtime\":" + json_text(each.text("/runtime")) + ",\"state\":" + json_text(state) +
            ",\"reason\":" + json_text(outcome.reason) + "},";
  }
  const bool is_told = json.back() == ',';
  if (is_told) json.pop_back();
  if (admin.wants_json()) {
    print(json + "]}\n");
  } else {
    print(
        is_told
            ? table.text()
            : "kept; no runtime has said yet that it serves these versions, and each is told when it does\n");
  }
  return is_fine ? kExitOk : kExitRefused;
}

}  // namespace windlass::cli
