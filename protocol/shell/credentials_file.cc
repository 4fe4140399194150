// Reads the credentials file (credentials.h).
#include <algorithm>
#include <array>

#include "protocol/shell/config_reader.h"
#include "protocol/shell/config_values.h"
#include "protocol/shell/credentials.h"

namespace windlass {
namespace {

CredentialRole read_role(ConfigTable& table) {
  static constexpr std::array<std::string_view, 3> kRoles = {"worker", "agent",
                                                             "runtime"};  // in the order of the enum
  const std::string role = table.choice("role", kRoles.front(), kRoles);
  return static_cast<CredentialRole>(std::ranges::find(kRoles, role) - kRoles.begin());
}

BearerCredential read_token(ConfigTable& table) {
  BearerCredential token;
  token.tenant = table.required_text("tenant", "the tenant whose workers may use it");
  token.name = table.text("name", "");
  token.instance = table.optional_text("instance");
  token.role = read_role(table);
  token.application = table.text("application", "");
  const std::string hash =
      table.required_text("sha256", "the token's hash, as `windlass token new` prints it");
  if (const auto digest = parse_sha256(hash)) {
    token.sha256 = *digest;
  } else if (!hash.empty()) {
    table.problem("sha256", "must be 64 lower-case hex digits, as `windlass token new` prints them");
  }
  if (const auto text = table.optional_text("expires")) {
    token.expires = parse_day(*text);
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
  certificate.role = read_role(table);
  certificate.application = table.text("application", "");
  if (certificate.fingerprint.empty() == certificate.san.empty()) {
    table.problem("",
                  "needs either fingerprint (SHA-256, 64 hex digits) or san (as \"DNS:worker-1.example\")");
  } else if (!certificate.fingerprint.empty() && !parse_sha256(certificate.fingerprint)) {
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
