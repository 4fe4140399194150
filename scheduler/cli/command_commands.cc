#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

#include "protocol/crypto/percent_encoding.h"
#include "scheduler/cli/commands.h"
#include "scheduler/cli/table.h"

namespace windlass::cli {
namespace {

constexpr std::uint64_t kPollSeconds = 20;  // within what the listener holds a request

// What PAYLOAD stands for; nothing after a complaint.
std::optional<std::string> read_payload(const std::string& given) {
  std::string text = given;
  if (given == "-") {
    text.assign(std::istreambuf_iterator<char>{std::cin}, {});
  } else if (given.starts_with('@')) {
    std::ifstream in{given.substr(1), std::ios::binary};
    if (!in) {
      complain("the payload file '" + given.substr(1) + "' cannot be read");
      return std::nullopt;
    }
    text.assign(std::istreambuf_iterator<char>{in}, {});
  }
  const auto json = Json::parse(text);
  if (json && json->is_object()) return text;
  complain(
      "the payload is not a JSON object, such as '{\"text\":\"hello\"}'; @FILE and - read it from elsewhere");
  return std::nullopt;
}

bool is_finished(const Json& command) {
  const std::string state = command.text("/state");
  return state == "done" || state == "failed";
}

// Asks until the command has its outcome or the time is over; nothing after a refusal.
std::optional<Json> fetch_command(Admin& admin, const Name& name, std::uint64_t wait_s) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{wait_s};
  for (;;) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
    const auto wait = std::clamp<milliseconds>(left, milliseconds{0}, std::chrono::seconds{kPollSeconds});
    std::string target = "/v1/commands/" + name.path();
    if (wait.count() > 0) target += "?wait_ms=" + std::to_string(wait.count());
    auto command = admin.ask({"GET", target, {}, wait});
    if (!command || is_finished(*command) || wait.count() == 0) return command;
  }
}

int show(const Admin& admin, const Json& command, bool was_awaited) {
  const std::string state = command.text("/state");
  if (admin.wants_json()) {
    print(admin.body());
  } else {
    Table table{{"FIELD", "VALUE"}};
    for (const char* field : {"tenant",
                              "id",
                              "application",
                              "language",
                              "worker",
                              "idempotent",
                              "moves",
                              "type",
                              "state",
                              "sends",
                              "created_at",
                              "timeout_ms",
                              "finished_at",
                              "payload",
                              "result/type",
                              "result/payload",
                              "result/attachment/type",
                              "failure/code",
                              "failure/reason",
                              "failure/may_have_run"}) {
      const std::string pointer = std::string{"/"} + field;
      if (command.has(pointer)) table.add({field, command.text(pointer)});
    }
    print(table.text());
  }
  if (state == "failed") return kExitRefused;
  // How our agents say that a command was done in vain.
  if (state == "done" && command.text("/result/payload/ok") == "false") return kExitRefused;
  if (was_awaited && state != "done") {
    complain("the command has no outcome yet; it stays with the scheduler, see 'windlass command " +
             command.text("/tenant") + '/' + command.text("/id") + "'");
    return kExitRefused;
  }
  return kExitOk;
}

std::string list_target(const std::string& path, const ListOptions& options) {
  std::string target = path + "?limit=" + std::to_string(options.limit);
  if (!options.tenant.empty()) target += "&tenant=" + percent_encode(options.tenant);
  if (!options.worker.empty()) target += "&worker=" + percent_encode(options.worker);
  if (!options.state.empty()) target += "&state=" + percent_encode(options.state);
  return target;
}

void tell_of_more(const Json& answer, const ListOptions& options) {
  if (answer.has("/next")) complain("there are more than " + std::to_string(options.limit) + "; see --limit");
}

}  // namespace

namespace {

struct Addressee {
  std::optional<Name> name;  // with the tenant
  std::string path;          // where commands for it are posted
  int exit_code = kExitUsage;
};

Addressee language_of(const SendOptions& options) {
  Name name{given_tenant(options.name.tenant), options.name.text};
  if (const auto both =
          options.name.text.find('/') == std::string::npos ? std::nullopt : parse_name(options.name.text)) {
    name = *both;
  }
  if (name.tenant.empty()) {
    complain("whose workers? write TENANT/" + name.id + ", or give --tenant");
    return {};
  }
  return {name, "/v1/languages/" + name.path(), kExitOk};
}

// A name with a slash is a worker, one without an application; --app and --language say it of either.
Addressee addressee_of(Admin& admin, const SendOptions& options) {
  if (options.is_language) return language_of(options);
  if (options.is_app || options.name.text.find('/') == std::string::npos) {
    const AppLookup app = find_app(admin, options.name);
    if (!app.name) return {std::nullopt, {}, app.exit_code};
    return {app.name, "/v1/apps/" + app.name->path(), kExitOk};
  }
  const auto name = parse_name(options.name.text);
  if (!name) return {};
  if (options.is_idempotent) {
    complain(
        "--idempotent is for commands to an application or a language: a named worker is never replaced");
    return {};
  }
  return {name, "/v1/workers/" + name->path(), kExitOk};
}

}  // namespace

int send_command(Admin& admin, const SendOptions& options) {
  const auto payload = read_payload(options.payload);
  if (!payload) return kExitUsage;
  const Addressee to = addressee_of(admin, options);
  if (!to.name) return to.exit_code;
  std::string body = "{\"type\":" + json_text(options.type);
  if (!options.id.empty()) body += ",\"id\":" + json_text(options.id);
  if (options.timeout_s) body += ",\"timeout_ms\":" + std::to_string(*options.timeout_s * 1000);
  if (options.is_idempotent) body += ",\"idempotent\":true";
  body += ",\"payload\":" + *payload + '}';
  const bool is_unknown = to.path.starts_with("/v1/workers/") && admin.has(to.path) == false;
  const auto accepted = admin.ask({"POST", to.path + "/commands", body, {}});
  if (!accepted) return admin.exit_code();
  if (is_unknown) {
    complain("no worker '" + to.name->id + "' of tenant '" + to.name->tenant +
             "' is known; the command waits for it to come, and fails if it does not");
  }
  const Name command{to.name->tenant, accepted->text("/id")};
  if (!options.wait) {
    print(admin.wants_json() ? admin.body()
                             : "accepted: " + printable(command.tenant + '/' + command.id) + '\n');
    return kExitOk;
  }
  const auto finished = fetch_command(admin, command, options.wait_s);
  return finished ? show(admin, *finished, true) : admin.exit_code();
}

int show_command(Admin& admin, const std::string& text, std::uint64_t wait_s) {
  const auto name = parse_name(text);
  if (!name) return kExitUsage;
  const auto command = fetch_command(admin, *name, wait_s);
  return command ? show(admin, *command, wait_s > 0) : admin.exit_code();
}

int list_commands(Admin& admin, const ListOptions& options) {
  const auto answer = admin.ask({.target = list_target("/v1/commands", options)});
  if (!answer) return admin.exit_code();
  if (admin.wants_json()) {
    print(admin.body());
    return kExitOk;
  }
  Table table{{"COMMAND", "WORKER", "TYPE", "STATE", "SENDS", "CREATED", "FAILURE"}};
  for (const Json& each : answer->list("/commands")) {
    table.add({each.text("/tenant") + '/' + each.text("/id"), each.text("/worker"), each.text("/type"),
               each.text("/state"), each.text("/sends"), age_of(each.text("/created_at")),
               each.text("/failure/code")});
  }
  print(table.size() == 0 ? "no commands\n" : table.text());
  tell_of_more(*answer, options);
  return kExitOk;
}

int list_messages(Admin& admin, const ListOptions& options) {
  const auto answer = admin.ask({.target = list_target("/v1/messages", options)});
  if (!answer) return admin.exit_code();
  if (admin.wants_json()) {
    print(admin.body());
    return kExitOk;
  }
  Table table{{"NUMBER", "TENANT", "WORKER", "TYPE", "RECEIVED", "PAYLOAD"}};
  for (const Json& each : answer->list("/messages")) {
    table.add({each.text("/number"), each.text("/tenant"), each.text("/worker"), each.text("/type"),
               age_of(each.text("/received_at")), each.text("/payload")});
  }
  print(table.size() == 0 ? "no messages\n" : table.text());
  tell_of_more(*answer, options);
  return kExitOk;
}

}  // namespace windlass::cli
