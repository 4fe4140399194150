// What TLS connections are made from: certificates, keys, authorities and policy, read from PEM files. Shared
// by all loops; reload() swaps it for new connections while old ones keep what they began with.
#pragma once

#include <openssl/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "protocol/base/result.h"
#include "protocol/base/time.h"

namespace windlass {

// Whether a server asks its clients for certificates. Optional: none is fine, a bad one is refused.
enum class ClientCertificates : std::uint8_t { None, Optional, Required };

enum class TlsVersion : std::uint8_t { Tls12, Tls13 };

struct TlsIdentity {
  std::string certificate_file;  // PEM: the leaf, then what leads to the authority
  std::string key_file;          // PEM, not encrypted; others than its owner and group must not read it
  bool takes_expired = false;    // only for tests of what peers think of it
};

struct TlsServerOptions {
  TlsIdentity identity;
  ClientCertificates client_certificates = ClientCertificates::None;
  std::string client_authority_file = {};  // PEM; needed unless the policy is None
  TlsVersion version_min = TlsVersion::Tls12;
};

struct TlsClientOptions {
  std::string authority_file = {};                     // PEM; empty: the system's authorities
  std::optional<TlsIdentity> identity = std::nullopt;  // our certificate, if the server wants one
  TlsVersion version_min = TlsVersion::Tls12;
};

struct SslDeleter {
  void operator()(SSL* ssl) const;
};
using SslPointer = std::unique_ptr<SSL, SslDeleter>;

class TlsContext final {
 public:
  // Errors are one sentence that names the file and what is wrong with it.
  static Result<std::unique_ptr<TlsContext>> server(TlsServerOptions options);
  static Result<std::unique_ptr<TlsContext>> client(TlsClientOptions options);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // Reads the files again. After an error everything stays as it was. From any thread.
  Result<Done> reload();

  // When the first certificate of our own chain expires; none without one.
  std::optional<WallTime> expires() const;

  // A new connection, from any loop. A client's checks that the certificate was issued to `host`, a DNS name
  // or an IP address. None only when memory is short.
  SslPointer accept() const;
  SslPointer connect(const std::string& host) const;

 private:
  struct ContextDeleter {
    void operator()(SSL_CTX* context) const;
  };
  using ContextPointer = std::unique_ptr<SSL_CTX, ContextDeleter>;

  TlsContext() = default;
  static Result<ContextPointer> make(const TlsServerOptions& options);
  static Result<ContextPointer> make(const TlsClientOptions& options);
  SslPointer new_ssl() const;

  std::optional<TlsServerOptions> server_;  // one of the two
  std::optional<TlsClientOptions> client_;
  mutable std::mutex mutex_;  // of context_, which any thread may swap
  ContextPointer context_;
};

// The reason of the last OpenSSL failure of this thread, for people; clears the queue.
std::string take_tls_error();

}  // namespace windlass
