// The HTTP upgrade of one connection, as the step between TLS and WebSocket frames; one class per side.
// Dropped as soon as the connection is open.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "protocol/base/bytes.h"
#include "protocol/base/time.h"
#include "protocol/websocket/upgrade.h"

namespace windlass {

class Opening {
 public:
  enum class State : std::uint8_t { More, Open, Refused };
  struct Step {
    State state = State::More;
    std::string reason = {};  // of a refusal
    std::uint16_t http_status = 0;
    std::optional<Duration> retry_after = std::nullopt;
  };

  virtual ~Opening() = default;
  // What is sent before anything is read.
  virtual void begin(Bytes& out) = 0;
  // Takes its bytes from the front of `input`, and answers to `out`. Not to be called after Open or Refused.
  virtual Step handle_bytes(std::span<char>& input, Bytes& out) = 0;
};

// What a server's upgrades are judged by; shared by all of its connections.
struct ServerGate {
  websocket::UpgradeRules rules;
  std::optional<Duration> retry_after = std::nullopt;  // set: draining, every upgrade is refused with 503
};

class ServerOpening final : public Opening {
 public:
  // `gate` must outlive the opening.
  explicit ServerOpening(const ServerGate& gate) : gate_(gate), reader_(gate.rules) {}
  void begin(Bytes& /*out*/) override {}
  Step handle_bytes(std::span<char>& input, Bytes& out) override;

 private:
  const ServerGate& gate_;
  websocket::UpgradeRequestReader reader_;
};

class ClientOpening final : public Opening {
 public:
  // `request` was made with this nonce.
  ClientOpening(Bytes request, const websocket::UpgradeNonce& nonce)
      : request_(std::move(request)), reader_(nonce) {}
  void begin(Bytes& out) override { out += request_; }
  Step handle_bytes(std::span<char>& input, Bytes& out) override;

 private:
  Bytes request_;
  websocket::UpgradeResponseReader reader_;
};

}  // namespace windlass
