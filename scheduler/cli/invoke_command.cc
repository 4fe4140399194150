// windlass invoke: one call of one function. The return value goes to standard output and nothing else does.
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

#include "protocol/base/utf8.h"
#include "protocol/crypto/text_encoding.h"
#include "scheduler/cli/app_commands.h"
#include "scheduler/cli/table.h"

namespace windlass::cli {
namespace {

constexpr double kInvokeWaitSeconds = 600;   // where no timeout is given: as long as the command lives
constexpr double kInvokeMarginSeconds = 15;  // the runtime says first that it took too long

std::optional<std::string> read_all(const std::string& file) {
  if (file == "-") return std::string{std::istreambuf_iterator<char>{std::cin}, {}};
  std::ifstream in{file, std::ios::binary};
  if (in) return std::string{std::istreambuf_iterator<char>{in}, {}};
  complain("the file '" + file + "' cannot be read");
  return std::nullopt;
}

// The member that carries the input, with its comma; nothing after a complaint.
std::optional<std::string> input_member(const InvokeOptions& options) {
  if (!options.file.empty()) {
    const auto text = read_all(options.file);
    if (!text) return std::nullopt;
    // A file speaks for itself: JSON if it is, else text.
    return Json::parse(*text) ? ",\"data\":" + *text : ",\"text\":" + json_text(*text);
  }
  if (options.text) return ",\"text\":" + json_text(*options.text);
  if (!options.data) return std::string{};
  std::string data = *options.data;
  if (data == "-" || data.starts_with('@')) {
    auto read = read_all(data == "-" ? data : data.substr(1));
    if (!read) return std::nullopt;
    data = std::move(*read);
  }
  if (Json::parse(data)) return ",\"data\":" + data;
  complain("--data is not JSON, such as '{\"name\":\"Ada\"}'; plain text is given with --text");
  return std::nullopt;
}

void show_logs(const Json& result) {
  for (const Json& each : result.list("/logs")) {
    std::string line = each.text("/message");
    if (line.empty()) line = each.text("");
    const std::string level = each.text("/level");
    const std::string shown = (level.empty() ? "" : '[' + level + "] ") + line;
    std::fprintf(stderr, "%s\n", printable_lines(shown).c_str());
  }
}

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

bool is_text_type(const std::string& header) {
  std::string type = header.substr(0, header.find(';'));
  while (type.ends_with(' ')) type.pop_back();
  return type.starts_with("text/") || type == "application/json" || type.ends_with("+json");
}

// An HTTP answer whose body came as bytes and is text by its type, with the body as text, or as JSON; nothing
// where it is none.
std::optional<Json> with_text_body(const Json& answer) {
  if (!answer.has("/status") || !answer.has("/body/base64url") || answer.names("/body").size() != 1) {
    return std::nullopt;
  }
  std::string type;
  for (const std::string& name : answer.names("/headers")) {
    if (lower(name) == "content-type") type = lower(answer.text("/headers/" + name));
  }
  const auto bytes = base64url_decode(answer.text("/body/base64url"));
  if (!bytes || !is_text_type(type) || !is_utf8(*bytes)) return std::nullopt;
  const bool is_json = type.find("json") != std::string::npos && Json::parse(*bytes).has_value();
  return Json::parse("{\"status\":" + answer.raw("/status") + ",\"headers\":" + answer.raw("/headers") +
                     ",\"body\":" + (is_json ? std::string{*bytes} : json_text(*bytes)) + '}');
}

void show_return(const Json& result, bool wants_json) {
  const std::string raw = result.raw("/return");
  if (wants_json) {
    print((raw.empty() ? "null" : raw) + '\n');
  } else if (!raw.empty() && raw != "null") {
    const auto answer = Json::parse(raw);
    const auto text = answer ? with_text_body(*answer) : std::nullopt;
    print((text                   ? text->pretty("")
           : raw.starts_with('"') ? result.text("/return")
                                  : result.pretty("/return")) +
          '\n');
  }
}

// Nobody takes them yet, so that this is where they are seen. Beside the return value, which programs read.
void show_outputs(const Json& result) {
  for (const std::string& name : result.names("/outputs")) {
    const std::string value = result.raw("/outputs/" + name);
    std::fprintf(stderr, "output %s: %s\n", printable(name).c_str(), printable(value).c_str());
  }
}

int show_failure(const InvokeOptions& options, const Json& result) {
  std::string code = result.text("/code");
  // E.INTERNAL says nothing to people; callers over HTTP are told the cause.
  if (const std::string cause = result.text("/cause"); code == "E.INTERNAL" && !cause.empty()) {
    code = "E.INVOCATION.";
    for (const char c : cause) code += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  complain(options.app.text + '/' + options.function + " failed: " + result.text("/reason") +
           (code.empty() ? "" : " (" + code + ")"));
  if (options.stack && result.has("/stack")) {
    std::fprintf(stderr, "%s\n", printable_lines(result.text("/stack")).c_str());
  }
  return kExitRefused;
}

}  // namespace

int invoke_function(Admin& admin, const InvokeOptions& options) {
  const auto input = input_member(options);
  if (!input) return kExitUsage;
  const AppLookup app = find_app(admin, options.app);
  if (!app.name) return app.exit_code;
  std::string body = "{\"function\":" + json_text(options.function) + *input;
  if (options.timeout_s) {
    body += ",\"timeout_ms\":" + std::to_string(static_cast<std::uint64_t>(*options.timeout_s * 1000));
  }
  if (!options.id.empty()) body += ",\"id\":" + json_text(options.id);
  body += '}';
  const auto accepted =
      admin.ask({.method = "POST", .target = "/v1/apps/" + app.name->path() + "/invoke", .body = body});
  if (!accepted) return admin.exit_code();
  const Name name{app.name->tenant, accepted->text("/commands/0/id")};
  const double wait = options.timeout_s ? *options.timeout_s + kInvokeMarginSeconds : kInvokeWaitSeconds;
  const auto command = wait_for_command(admin, name, wait);
  if (!command) return admin.exit_code();
  if (command->text("/state") == "failed") {
    complain("the invocation has no result: " + command->text("/failure/reason"));
    return kExitRefused;
  }
  if (command->text("/state") != "done") {
    complain("the invocation has no result yet; see 'windlass command " + name.tenant + '/' + name.id + "'");
    return kExitRefused;
  }
  const auto result = Json::parse(command->raw("/result/payload"));
  if (!result) return kExitRefused;
  show_logs(*result);
  if (result->text("/ok") != "true") return show_failure(options, *result);
  show_outputs(*result);
  show_return(*result, admin.wants_json());
  return kExitOk;
}

}  // namespace windlass::cli
