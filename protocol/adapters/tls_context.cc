#include "protocol/adapters/tls_context.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <utility>

#include "protocol/adapters/private_file.h"
#include "protocol/adapters/socket.h"
#include "protocol/base/limits.h"

namespace windlass {
namespace {

Error file_error(const std::string& what, const std::string& file, const std::string& why,
                 SourceLine where = SourceLine::here()) {
  return {ErrorCode::Internal, Blame::Local, what + " file '" + file + "' " + why, where};
}

// OpenSSL's own words for a missing file are many and unclear, so we look first.
Result<Done> check_readable(const std::string& what, const std::string& file) {
  if (file.empty()) {
    return Error{ErrorCode::Internal, Blame::Local, "no " + what + " file is configured; name one"};
  }
  errno = 0;
  const std::ifstream stream{file};
  if (!stream) return file_error(what, file, "cannot be read: " + error_text(errno == 0 ? EIO : errno));
  return Done{};
}

WallTime wall_time(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return WallTime{};
  return WallTime{seconds{::timegm(&parts)}};
}

WallTime wall_now() {
  return std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now());
}

std::string day_text(WallTime time) {
  const std::chrono::year_month_day day{std::chrono::floor<std::chrono::days>(time)};
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02u", static_cast<int>(day.year()),
                static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
  return text.data();
}

// Of the leaf and of what leads to the authority: peers refuse all of it when one of them is too old.
std::optional<WallTime> chain_expires(SSL_CTX* context) {
  const X509* const leaf = SSL_CTX_get0_certificate(context);
  if (leaf == nullptr) return std::nullopt;
  WallTime first = wall_time(X509_get0_notAfter(leaf));
  STACK_OF(X509)* chain = nullptr;
  if (SSL_CTX_get0_chain_certs(context, &chain) == 1) {
    for (int i = 0; i < sk_X509_num(chain); ++i) {
      first = std::min(first, wall_time(X509_get0_notAfter(sk_X509_value(chain, i))));
    }
  }
  return first;
}

Result<Done> load_identity(SSL_CTX* context, const TlsIdentity& identity) {
  if (auto readable = check_readable("certificate", identity.certificate_file); !readable) return readable;
  if (auto readable = check_readable("key", identity.key_file); !readable) return readable;
  if (auto is_private = check_private(identity.key_file); !is_private) return is_private;
  if (SSL_CTX_use_certificate_chain_file(context, identity.certificate_file.c_str()) != 1) {
    return file_error("certificate", identity.certificate_file,
                      "holds no usable PEM certificate: " + take_tls_error());
  }
  // SSL_CTX_use_PrivateKey_file compares with the certificate too, so its errors are told apart here.
  if (SSL_CTX_use_PrivateKey_file(context, identity.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    const bool mismatch = ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH;
    const std::string why = take_tls_error();
    return file_error("key", identity.key_file,
                      mismatch ? "does not belong to the certificate in '" + identity.certificate_file + "'"
                               : "holds no usable PEM private key: " + why);
  }
  const auto expires = chain_expires(context);
  if (expires && *expires <= wall_now() && !identity.takes_expired) {
    return file_error("certificate", identity.certificate_file,
                      "expired on " + day_text(*expires) + ", so every peer would refuse it; renew it");
  }
  return Done{};
}

Result<Done> load_authority(SSL_CTX* context, const std::string& file) {
  if (auto readable = check_readable("authority", file); !readable) return readable;
  if (SSL_CTX_load_verify_locations(context, file.c_str(), nullptr) != 1) {
    return file_error("authority", file, "holds no usable PEM certificate: " + take_tls_error());
  }
  return Done{};
}

// A key with a pass phrase must not make a service ask its terminal.
int no_pass_phrase(char*, int, int, void*) {
  return 0;
}

// Of TLS 1.2, whose other suites do without forward secrecy or without authenticated encryption. Those of
// TLS 1.3 all have both.
constexpr const char* kSuites = "ECDHE+AESGCM:ECDHE+CHACHA20";

void set_common(SSL_CTX* context, TlsVersion version_min) {
  CHECK(SSL_CTX_set_cipher_list(context, kSuites) == 1);
  SSL_CTX_set_min_proto_version(context, version_min == TlsVersion::Tls13 ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_default_passwd_cb(context, no_pass_phrase);
  // An idle connection gives its record buffers back: 34 KiB less each.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // Room that a peer gets by announcing a long chain, before it has shown any of it.
  SSL_CTX_set_max_cert_list(context, limits::kCertificatesBytesMax);
  // Every connection proves itself anew: no tickets and no stored sessions, which would outlive a revoked
  // certificate and cost memory per connection. Renegotiation and compression are old holes.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
}

bool is_ip_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> ignored{};
  return ::inet_pton(AF_INET, host.c_str(), ignored.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), ignored.data()) == 1;
}

}  // namespace

void SslDeleter::operator()(SSL* ssl) const {
  SSL_free(ssl);
}

void TlsContext::ContextDeleter::operator()(SSL_CTX* context) const {
  SSL_CTX_free(context);
}

TlsContext::~TlsContext() = default;

Result<std::unique_ptr<TlsContext>> TlsContext::server(TlsServerOptions options) {
  std::unique_ptr<TlsContext> made{new TlsContext};
  made->server_ = std::move(options);
  if (auto loaded = made->reload(); !loaded) return loaded.error();
  return made;
}

Result<std::unique_ptr<TlsContext>> TlsContext::client(TlsClientOptions options) {
  std::unique_ptr<TlsContext> made{new TlsContext};
  made->client_ = std::move(options);
  if (auto loaded = made->reload(); !loaded) return loaded.error();
  return made;
}

Result<Done> TlsContext::reload() {
  auto made = server_ ? make(*server_) : make(*client_);
  if (!made) return made.error();
  const std::lock_guard lock{mutex_};
  context_ = std::move(*made);
  return Done{};
}

Result<TlsContext::ContextPointer> TlsContext::make(const TlsServerOptions& options) {
  ContextPointer context{SSL_CTX_new(TLS_server_method())};
  CHECK(context != nullptr);
  set_common(context.get(), options.version_min);
  if (auto loaded = load_identity(context.get(), options.identity); !loaded) return loaded.error();
  if (options.client_certificates != ClientCertificates::None) {
    if (auto loaded = load_authority(context.get(), options.client_authority_file); !loaded) {
      return loaded.error();
    }
    // The list tells clients which of their certificates would do.
    SSL_CTX_set_client_CA_list(context.get(), SSL_load_client_CA_file(options.client_authority_file.c_str()));
    const bool required = options.client_certificates == ClientCertificates::Required;
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                       nullptr);
  }
  return context;
}

Result<TlsContext::ContextPointer> TlsContext::make(const TlsClientOptions& options) {
  ContextPointer context{SSL_CTX_new(TLS_client_method())};
  CHECK(context != nullptr);
  set_common(context.get(), options.version_min);
  if (options.authority_file.empty()) {
    if (SSL_CTX_set_default_verify_paths(context.get()) != 1) {
      return Error{ErrorCode::Internal, Blame::Local,
                   "the system's certificate authorities cannot be read; name an authority file"};
    }
  } else if (auto loaded = load_authority(context.get(), options.authority_file); !loaded) {
    return loaded.error();
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  if (options.identity) {
    if (auto loaded = load_identity(context.get(), *options.identity); !loaded) return loaded.error();
  }
  return context;
}

std::optional<WallTime> TlsContext::expires() const {
  const std::lock_guard lock{mutex_};
  return chain_expires(context_.get());
}

SslPointer TlsContext::new_ssl() const {
  const std::lock_guard lock{mutex_};
  return SslPointer{SSL_new(context_.get())};
}

SslPointer TlsContext::accept() const {
  SslPointer ssl = new_ssl();
  if (ssl) SSL_set_accept_state(ssl.get());
  return ssl;
}

SslPointer TlsContext::connect(const std::string& host) const {
  SslPointer ssl = new_ssl();
  if (!ssl) return nullptr;
  SSL_set_connect_state(ssl.get());
  if (is_ip_address(host)) {
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), host.c_str()) != 1) return nullptr;
    return ssl;
  }
  SSL_set_hostflags(ssl.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (SSL_set1_host(ssl.get(), host.c_str()) != 1) return nullptr;
  if (SSL_set_tlsext_host_name(ssl.get(), host.c_str()) != 1) return nullptr;
  return ssl;
}

std::string take_tls_error() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "unknown TLS error" : reason;
}

}  // namespace windlass
