// Functions as function.json files describe them, for applications that do not register by code. Nothing is
// thrown away: a function that cannot be used is there with the reason, so that whoever asks for it hears it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/result.h"
#include "runtime/adapters/http_access.h"
#include "runtime/core/log_levels.h"
#include "runtime/core/messages.h"

namespace windlass::runtime {

struct FunctionPlace {
  std::string directory;  // of the application, as its worker sees it
  std::string language;
  const TextMap* settings = nullptr;  // may switch a function off
};

FunctionRef read_function_json(std::string_view name, std::string_view text, const FunctionPlace& place);
// By function name. Names that differ in case only are one to people who invoke them: the second is refused,
// and the reason names both.
std::vector<FunctionRef> read_function_jsons(const TextMap& texts, const FunctionPlace& place);
// Every <folder>/*/function.json, by the folder's name. An error names the file.
Result<TextMap> read_function_folder(const std::string& folder);

// What a runtime takes from host.json. Anything else in it is the business of others.
struct HostSettings {
  std::string route_prefix = "api";
  std::optional<Duration> function_timeout = std::nullopt;
  bool is_idempotent = false;  // "idempotent": its functions may run again after a worker was lost
  LogLevels log_levels = {};   // "logging.logLevel"
  std::vector<std::string> warnings = {};  // what is ignored and why, one sentence each
};
Result<HostSettings> read_host_json(std::string_view text);  // empty text: all defaults

// A binding from its JSON; an error says what is missing.
Result<Binding> read_binding(std::string_view json);
bool is_known_trigger(std::string_view type);
// What of a trigger's JSON the HTTP front needs.
struct HttpTrigger {
  std::string route;  // as written; empty: the function's name
  bool has_route = false;
  std::vector<std::string> methods;       // upper case; empty: all
  AuthLevel level = AuthLevel::Function;  // so too where none is named
};
Result<HttpTrigger> read_http_trigger(const Binding& binding);
// Of each output that nobody here takes, one sentence.
std::vector<std::string> output_warnings(const Function& function);

}  // namespace windlass::runtime
