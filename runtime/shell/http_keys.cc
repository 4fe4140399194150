#include "runtime/shell/http_keys.h"

#include <array>
#include <optional>
#include <utility>

#include "protocol/shell/access_tokens.h"
#include "protocol/shell/config_reader.h"
#include "runtime/adapters/http_asked.h"

namespace windlass::runtime {
namespace {

std::optional<Digest> digest_of_hex(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  Digest digest{};
  if (text.size() != 2 * digest.size()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t value = kDigits.find(text[i]);
    if (value == std::string_view::npos) return std::nullopt;
    digest[i / 2] = static_cast<std::uint8_t>(digest[i / 2] * 16 + value);
  }
  return digest;
}

void add_key(ConfigTable& table, HttpKeys& keys) {
  const std::string hash = table.required_text("sha256", "the key's hash, as `windlass key new` prints it");
  const auto digest = digest_of_hex(hash);
  if (!digest && !hash.empty()) {
    table.problem("sha256", "must be 64 lower-case hex digits, as `windlass key new` prints them");
  }
  const std::string application = in_lower_case(table.text("application", ""));
  const std::string function = in_lower_case(table.text("function", ""));
  static constexpr std::array<std::string_view, 2> kLevels = {"function", "admin"};
  const bool is_admin = table.choice("level", "function", kLevels) == "admin";
  static_cast<void>(table.text("name", ""));  // for people
  if (!function.empty() && application.empty())
    table.problem("function", "needs the application that it is of");
  if (!function.empty() && is_admin) table.problem("level", "is admin for whole applications only");
  if (!digest) return;
  HttpKeys::Application& place = application.empty() ? keys.everywhere : keys.applications[application];
  if (!function.empty()) return place.functions[function].push_back(*digest);
  (is_admin ? place.admin : place.host).push_back(*digest);
}

}  // namespace

Result<HttpKeys> read_http_keys_file(const std::string& path) {
  ConfigReader reader{ConfigSources{.file = path}};
  HttpKeys keys;
  for (ConfigTable& table : reader.tables("key")) add_key(table, keys);
  const auto problems = reader.finish();
  if (problems.empty()) return keys;
  return Error{ErrorCode::Internal, Blame::Local, problems.front()};
}

Result<Digest> read_http_key_file(const std::string& path) {
  const SecretFile file = read_secret_file(path);
  if (!file.problem.empty()) return Error{ErrorCode::Internal, Blame::Local, file.problem};
  if (file.secret.size() < kAccessTokenBytesMin) {
    return Error{ErrorCode::Internal, Blame::Local,
                 path + ": the key has " + std::to_string(file.secret.size()) + " characters, and " +
                     std::to_string(kAccessTokenBytesMin) +
                     " are the least; make one with `windlass key new`"};
  }
  return sha256(file.secret);
}

}  // namespace windlass::runtime
