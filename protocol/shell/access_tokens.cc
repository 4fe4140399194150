#include "protocol/shell/access_tokens.h"

#include <set>

#include "protocol/shell/config_values.h"

namespace windlass {
namespace {

constexpr const char* kSharedName = "admin";

Error unusable(std::string reason, SourceLine where = SourceLine::here()) {
  return {ErrorCode::Internal, Blame::Local, std::move(reason), where};
}

Result<AccessToken> shared_token(const std::string& secret, const std::string& place) {
  if (secret.size() < kAccessTokenBytesMin) {
    return unusable(place + ": the token has " + std::to_string(secret.size()) + " characters, and " +
                    std::to_string(kAccessTokenBytesMin) +
                    " are the least; make one with `windlass token new`");
  }
  return AccessToken{sha256(secret), kSharedName};
}

AccessToken read_named_token(ConfigTable& table) {
  AccessToken token{Digest{}};
  token.name = table.required_text("name", "whose token it is, for the log");
  const std::string hash =
      table.required_text("sha256", "the token's hash, as `windlass token new --admin` prints it");
  if (const auto digest = parse_sha256(hash)) {
    token.sha256 = *digest;
  } else if (!hash.empty()) {
    table.problem("sha256", "must be 64 lower-case hex digits, as `windlass token new --admin` prints them");
  }
  if (const auto text = table.optional_text("expires")) {
    token.expires = parse_day(*text);
    if (!token.expires) table.problem("expires", "must be a day, as \"2027-01-31\"");
  }
  return token;
}

Result<Done> add_named_tokens(const std::string& path, std::vector<AccessToken>& tokens) {
  ConfigReader reader{ConfigSources{.file = path}};
  std::set<std::string> names;
  for (ConfigTable& table : reader.tables("token")) {
    tokens.push_back(read_named_token(table));
    const std::string& name = tokens.back().name;
    if (!name.empty() && !names.insert(name).second) table.problem("name", "is given to another token too");
  }
  const auto problems = reader.finish();
  if (!problems.empty()) return unusable(problems.front());
  if (names.empty()) return unusable(path + ": holds no [[token]]; add one with name and sha256");
  return Done{};
}

}  // namespace

AccessSettings read_access(ConfigTable& table) {
  AccessSettings settings;
  settings.token = table.secret("token");
  settings.token_file = table.text("token_file", "");
  settings.tokens_file = table.text("tokens_file", "");
  const auto check = [&](std::string_view key, const AccessSettings& alone) {
    if (!alone.is_any()) return;
    if (const auto read = read_access_tokens(alone); !read) {
      table.problem(key, "is of no use: " + read.error().reason);
    }
  };
  if (settings.token_file.empty()) check("token", {settings.token, {}, {}});
  check("token_file", {{}, settings.token_file, {}});
  check("tokens_file", {{}, {}, settings.tokens_file});
  return settings;
}

Result<std::vector<AccessToken>> read_access_tokens(const AccessSettings& settings) {
  std::vector<AccessToken> tokens;
  if (!settings.token_file.empty()) {
    const SecretFile file = read_secret_file(settings.token_file);
    if (!file.problem.empty()) return unusable(file.problem);
    auto token = shared_token(file.secret, settings.token_file);
    if (!token) return token.error();
    tokens.push_back(*std::move(token));
  } else if (!settings.token.empty()) {
    auto token = shared_token(settings.token, "the token in the environment");
    if (!token) return token.error();
    tokens.push_back(*std::move(token));
  }
  if (!settings.tokens_file.empty()) {
    if (const auto added = add_named_tokens(settings.tokens_file, tokens); !added) return added.error();
  }
  return tokens;
}

}  // namespace windlass
