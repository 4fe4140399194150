// The HTTP/1.1 upgrade that opens a WebSocket connection, both sides, as functions over bytes. Every head is
// bounded and judged whole; no extension and no subprotocol is offered or accepted. HTTP parsing is Beast's
// and stays in the .cc. Authorization is a secret: it is never part of an error, and callers must not log it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "protocol/base/bytes.h"
#include "protocol/base/limits.h"
#include "protocol/base/result.h"
#include "protocol/base/time.h"

namespace windlass::websocket {

enum class HttpStatus : std::uint16_t {
  SwitchingProtocols = 101,
  BadRequest = 400,
  Forbidden = 403,
  NotFound = 404,
  UpgradeRequired = 426,
  HeadTooLarge = 431,
  ServiceUnavailable = 503,
};

// Collects one HTTP head from pieces, at most `bytes_max` of it.
class HeadBuffer {
 public:
  // At most 65535, which is as far as the HTTP parser counts.
  explicit HeadBuffer(std::size_t bytes_max);

  enum class Progress : std::uint8_t { More, Whole, TooLarge };
  // Moves bytes from the front of `input`; what follows the head stays there.
  Progress take(std::span<char>& input);
  BytesView head() const { return head_; }

 private:
  Bytes head_;
  std::size_t bytes_max_;
};

// ---- server ----

struct UpgradeRules {
  std::vector<std::string> paths;            // served, compared with the target up to its '?'
  std::vector<std::string> origins_allowed;  // any other Origin is refused; none means no browser connects
  std::size_t head_bytes_max = limits::kUpgradeHeadBytesMax;
};

struct UpgradeRequest {
  std::string target;
  std::string host;
  std::string key;  // for accept_response
  std::optional<std::string> origin;
  std::optional<std::string> authorization;
};

class UpgradeRequestReader {
 public:
  // `rules` must outlive the reader.
  explicit UpgradeRequestReader(const UpgradeRules& rules) : rules_(rules), buffer_(rules.head_bytes_max) {}

  // Takes the request's bytes from the front of `input`; what follows them stays there. The request once it
  // is whole; none while more is needed; or the client's mistake, to be answered with
  // refusal_response(refusal_status()) and a close. Not to be called again after a request or an error.
  Result<std::optional<UpgradeRequest>> handle_bytes(std::span<char>& input);
  HttpStatus refusal_status() const { return refusal_status_; }

 private:
  Error refuse(HttpStatus status, const char* reason, SourceLine where = SourceLine::here());
  Result<std::optional<UpgradeRequest>> judge();

  const UpgradeRules& rules_;
  HeadBuffer buffer_;
  HttpStatus refusal_status_ = HttpStatus::BadRequest;
};

Bytes accept_response(const UpgradeRequest& request);

// A whole response without body after which the connection is closed. `retry_after` is rounded up to seconds;
// ServiceUnavailable should carry one.
Bytes refusal_response(HttpStatus status, std::optional<Duration> retry_after = std::nullopt);

// ---- client ----

// Sixteen bytes the caller draws at random for every connection.
using UpgradeNonce = std::array<std::uint8_t, 16>;

struct UpgradeAddress {
  std::string host;  // with its port unless that is the default one
  std::string target;
  std::optional<std::string> origin = std::nullopt;
  std::optional<std::string> authorization = std::nullopt;
};

// An error (ours to blame) if a field could not stand in an HTTP head.
Result<Bytes> upgrade_request(const UpgradeAddress& address, const UpgradeNonce& nonce);

struct UpgradeReply {
  std::uint16_t status = 0;
  std::optional<Duration> retry_after;  // of a refusal, at most limits::kRetryAfterMax
  bool is_accepted() const { return status == static_cast<std::uint16_t>(HttpStatus::SwitchingProtocols); }
};

class UpgradeResponseReader {
 public:
  explicit UpgradeResponseReader(const UpgradeNonce& nonce) : nonce_(nonce) {}

  // As UpgradeRequestReader::handle_bytes. A refusal is a reply too; an error means that the peer is no
  // WebSocket server, did not read our key, or wants what we did not offer.
  Result<std::optional<UpgradeReply>> handle_bytes(std::span<char>& input);

 private:
  UpgradeNonce nonce_;
  HeadBuffer buffer_{limits::kUpgradeHeadBytesMax};
};

}  // namespace windlass::websocket
