// Reads the credentials file (credentials.h).
#include <array>
#include <cstdio>

#include "protocol/shell/config_reader.h"
#include "protocol/shell/credentials.h"

namespace windlass {
namespace {

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return std::nullopt;
}

std::optional<Digest> digest_from(std::string_view text) {
  Digest digest{};
  if (text.size() != 2 * digest.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const auto high = hex_digit(text[2 * i]);
    const auto low = hex_digit(text[2 * i + 1]);
    if (!high || !low) return std::nullopt;
    digest[i] = static_cast<std::uint8_t>(*high * 16 + *low);
  }
  return digest;
}

// "2027-01-31", the beginning of that day in UTC.
std::optional<WallTime> date_from(const std::string& text) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  int used = 0;
  const bool is_date = std::sscanf(text.c_str(), "%4d-%2u-%2u%n", &year, &month, &day, &used) == 3 &&
                       static_cast<std::size_t>(used) == text.size();
  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{month},
                                         std::chrono::day{day}};
  if (!is_date || !date.ok()) return std::nullopt;
  return std::chrono::time_point_cast<milliseconds>(std::chrono::sys_days{date});
}

BearerCredential read_token(ConfigTable& table) {
  BearerCredential token;
  token.tenant = table.required_text("tenant", "the tenant whose workers may use it");
  token.name = table.text("name", "");
  token.instance = table.optional_text("instance");
  const std::string hash =
      table.required_text("sha256", "the token's hash, as `windlass token new` prints it");
  if (const auto digest = digest_from(hash)) {
    token.sha256 = *digest;
  } else if (!hash.empty()) {
    table.problem("sha256", "must be 64 lower-case hex digits, as `windlass token new` prints them");
  }
  if (const auto text = table.optional_text("expires")) {
    token.expires = date_from(*text);
    if (!token.expires) table.problem("expires", "must be a day, as \"2027-01-31\"");
  }
  return token;
}

CertificateCredential read_certificate(ConfigTable& table) {
  CertificateCredential certificate;
  certificate.tenant = table.required_text("tenant", "the tenant whose workers show it");
  certificate.fingerprint = table.text("fingerprint", "");
  certificate.san = table.text("san", "");
  certificate.instance = table.optional_text("instance");
  if (certificate.fingerprint.empty() == certificate.san.empty()) {
    table.problem("",
                  "needs either fingerprint (SHA-256, 64 hex digits) or san (as \"DNS:worker-1.example\")");
  } else if (!certificate.fingerprint.empty() && !digest_from(certificate.fingerprint)) {
    table.problem("fingerprint", "must be 64 lower-case hex digits");
  }
  return certificate;
}

}  // namespace

Result<Credentials> read_credentials(const std::string& path) {
  ConfigReader reader{ConfigSources{.file = path}};
  Credentials credentials;
  for (ConfigTable& table : reader.tables("token")) credentials.tokens.push_back(read_token(table));
  for (ConfigTable& table : reader.tables("certificate"))
    credentials.certificates.push_back(read_certificate(table));
  for (ConfigTable& table : reader.named_tables("tenant")) {
    const std::string name = table.name().substr(table.name().find('.') + 1);
    credentials.tenants[name].certificate_required = table.boolean("certificate_required", false);
  }
  const auto problems = reader.finish();
  if (problems.empty()) return credentials;
  return Error{ErrorCode::Internal, Blame::Local, problems.front()};
}

}  // namespace windlass
