#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <thread>
#include <utility>

#include "protocol/crypto/percent_encoding.h"
#include "scheduler/cli/commands.h"
#include "scheduler/cli/table.h"

namespace windlass::cli {
namespace {

constexpr int kPagesMax = 1000;

// All pages; nothing after a refusal.
std::optional<std::vector<Json>> fetch_workers(Admin& admin, const std::string& tenant) {
  std::vector<Json> workers;
  std::string after;
  for (int page = 0; page < kPagesMax; ++page) {
    std::string target = "/v1/workers?limit=1000";
    if (!tenant.empty()) target += "&tenant=" + percent_encode(tenant);
    if (!after.empty()) target += "&after=" + percent_encode(after);
    const auto answer = admin.ask({.target = target});
    if (!answer) return std::nullopt;
    for (Json& each : answer->list("/workers")) workers.push_back(std::move(each));
    after = answer->text("/next");
    if (after.empty()) break;
  }
  return workers;
}

std::string percent(const Json& worker, std::string_view pointer) {
  if (!worker.has(pointer)) return {};
  return std::to_string(static_cast<int>(std::lround(worker.number(pointer)))) + '%';
}

std::string state_of(const Json& worker) {
  std::string state = worker.text("/state");
  if (worker.text("/draining") == "true" && state == "DETACHED") state += " (draining)";
  // Why a worker that is there gets nothing new.
  const std::string placement = worker.text("/placement");
  if (state == "READY" && placement != "open" && !placement.empty()) state += " (" + placement + ")";
  return state;
}

std::string as_json(const std::vector<Json>& workers) {
  std::string text = "{\"workers\":[";
  for (const Json& each : workers) text += each.raw("") + ',';
  if (!workers.empty()) text.pop_back();
  return text + "]}\n";
}

// What a language worker is doing has columns of its own where there is one.
Table worker_table(const std::vector<Json>& workers) {
  const bool has_languages =
      std::ranges::any_of(workers, [](const Json& each) { return each.has("/language_worker"); });
  std::vector<std::string> titles{"TENANT", "ID",        "STATE",   "LIVENESS", "SINCE", "CPU",
                                  "MEM",    "IN FLIGHT", "WAITING", "RESULTS",  "NAME",  "ADDRESS"};
  if (has_languages) titles.insert(titles.begin() + 4, {"LANGUAGE", "APP", "APP STATE", "RUNTIME"});
  Table table{std::move(titles)};
  for (const Json& each : workers) {
    std::vector<std::string> cells{each.text("/tenant"),
                                   each.text("/id"),
                                   state_of(each),
                                   each.text("/liveness"),
                                   age_of(each.text("/since")),
                                   percent(each, "/load/cpu_pct"),
                                   percent(each, "/load/mem_pct"),
                                   each.text("/commands/in_flight"),
                                   each.text("/commands/waiting"),
                                   each.text("/commands/results"),
                                   each.text("/name"),
                                   each.text("/address")};
    if (has_languages) {
      const auto said = [&each](const std::string& name) { return each.text("/language_worker/" + name); };
      cells.insert(cells.begin() + 4,
                   {said("language"), said("application_id"), said("state"), said("runtime")});
    }
    table.add(std::move(cells));
  }
  return table;
}

// What changed between two looks at the fleet.
class TopView final {
 public:
  std::string draw(const std::vector<Json>& workers, const std::string& url, double seconds_passed) {
    std::map<std::string, std::size_t> states;
    double results = 0;
    double in_flight = 0;
    double waiting = 0;
    for (const Json& each : workers) {
      ++states[each.text("/state")];
      results += each.number("/commands/results");
      in_flight += each.number("/commands/in_flight");
      waiting += each.number("/commands/waiting");
    }
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "in flight %.0f, waiting %.0f, results %.0f", in_flight, waiting,
                  results);
    std::string text = "windlass top  " + printable(url) + "\n" + std::to_string(workers.size()) +
                       (workers.size() == 1 ? " worker:" : " workers:");
    for (const auto& [state, count] : states) text += ' ' + std::to_string(count) + ' ' + printable(state);
    text += "; commands: ";
    text += line.data();
    if (results_before_ && seconds_passed > 0) {
      std::snprintf(line.data(), line.size(), " (%.1f/s)",
                    std::max(0.0, results - *results_before_) / seconds_passed);
      text += line.data();
    }
    results_before_ = results;
    return text + "\n\n" + worker_table(workers).text();
  }

 private:
  std::optional<double> results_before_;
};

}  // namespace

int list_workers(Admin& admin, const WorkersOptions& options) {
  const auto workers = fetch_workers(admin, options.tenant);
  if (!workers) return admin.exit_code();
  if (admin.wants_json()) {
    print(as_json(*workers));
  } else if (workers->empty()) {
    print("no workers\n");
  } else {
    print(worker_table(*workers).text());
  }
  return kExitOk;
}

int list_denied(Admin& admin, const WorkersOptions& options) {
  const std::string query = options.tenant.empty() ? "" : "?tenant=" + percent_encode(options.tenant);
  const auto answer = admin.ask({.target = "/v1/denied" + query});
  if (!answer) return admin.exit_code();
  if (admin.wants_json()) {
    print(admin.body());
    return kExitOk;
  }
  Table table{{"TENANT", "ID", "SINCE"}};
  const std::vector<Json> denied = answer->list("/denied");
  for (const Json& each : denied) {
    table.add({each.text("/tenant"), each.text("/id"), age_of(each.text("/since"))});
  }
  print(denied.empty() ? "nobody is kept out\n" : table.text());
  return kExitOk;
}

int show_worker(Admin& admin, const std::string& text) {
  const auto name = parse_name(text);
  if (!name) return kExitUsage;
  const auto worker = admin.ask({.target = "/v1/workers/" + name->path()});
  if (!worker) return admin.exit_code();
  if (admin.wants_json()) {
    print(admin.body());
    return kExitOk;
  }
  Table table{{"FIELD", "VALUE"}};
  for (const char* field : {"tenant",          "id",           "name",       "role",          "revision",
                            "version",         "hostname",     "address",    "state",         "draining",
                            "liveness",        "placement",    "session_id", "first_seen",    "since",
                            "heard_at",        "max_parallel", "runtimes",   "payload_types", "load",
                            "language_worker", "invocations",  "commands",   "counters",      "drain",
                            "end_code",        "end_reason"}) {
    const std::string pointer = std::string{"/"} + field;
    if (worker->has(pointer)) table.add({field, worker->text(pointer)});
  }
  print(table.text());
  return kExitOk;
}

int act_on_worker(Admin& admin, const ActionOptions& options) {
  const auto name = parse_name(options.name);
  if (!name) return kExitUsage;
  std::string body;
  const auto add = [&](const std::string& member) { body += (body.empty() ? "{" : ",") + member; };
  if (!options.reason.empty()) add("\"reason\":" + json_text(options.reason));
  if (options.deadline_s) add("\"deadline_ms\":" + std::to_string(*options.deadline_s * 1000));
  if (!body.empty()) body += '}';
  const std::string path = "/v1/workers/" + name->path();
  const bool is_unknown = options.action == "revoke" && admin.has(path) == false;
  const auto answer = admin.ask({"POST", path + '/' + options.action, body, {}});
  if (!answer) return admin.exit_code();
  if (is_unknown) {
    complain("no worker '" + name->id + "' of tenant '" + name->tenant +
             "' is known; it is kept out should it come, until windlass allow " + options.name);
  }
  print(admin.wants_json() ? admin.body()
                           : "accepted: " + options.action + ' ' + printable(options.name) + '\n');
  return kExitOk;
}

int show_top(Admin& admin, const TopOptions& options) {
  TopView view;
  const bool clears = !options.once && ::isatty(STDOUT_FILENO) == 1;
  bool was_reached = false;
  auto before = std::chrono::steady_clock::now();
  for (;;) {
    const auto workers = fetch_workers(admin, options.tenant);
    if (!workers && (options.once || !was_reached || admin.exit_code() != kExitUnreachable))
      return admin.exit_code();
    const auto now = std::chrono::steady_clock::now();
    if (workers) {
      was_reached = true;
      const double passed = std::chrono::duration<double>(now - before).count();
      std::string text = admin.wants_json() ? as_json(*workers) : view.draw(*workers, admin.url(), passed);
      if (clears && !admin.wants_json()) text.insert(0, "\x1b[H\x1b[2J");
      print(text);
      std::fflush(stdout);
    }
    if (options.once) return kExitOk;
    before = now;
    std::this_thread::sleep_for(std::chrono::duration<double>{options.interval_s});
  }
}

}  // namespace windlass::cli
