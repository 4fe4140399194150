// One connection of a load client: TLS over our own pump, and a protocol that is spoken on it with as little
// work as is right. Every server measured is loaded by this one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/adapters/event_loop.h"
#include "protocol/adapters/socket_stream.h"
#include "protocol/adapters/tls_context.h"
#include "protocol/base/bytes.h"

namespace windlass::bench {

class LoadProtocol {
 public:
  virtual ~LoadProtocol() = default;
  // Appends what is said first, once TLS is up.
  virtual void begin(Bytes& out) = 0;
  virtual bool is_ready() const = 0;
  virtual void append_messages(std::size_t count, Bytes& out) = 0;
  // Answers that these bytes completed. May append what is owed for them.
  virtual std::size_t receive(std::string_view bytes, Bytes& out) = 0;
  // A run is over: appends what it had kept back to send together with something else.
  virtual void settle(Bytes& /*out*/) {}
};

enum class Greeting : std::uint8_t {
  None,  // TLS from the first byte
  Line,  // the server says a line in clear text before it
};

// Ends the bench with one sentence: a number measured after a mistake would be believed.
[[noreturn]] void stop_bench(const std::string& why);

class LoadConnection final : private ReadinessEvents {
 public:
  // Connects to the loopback; `loop` must outlive it.
  LoadConnection(EventLoop& loop, const TlsContext& tls, std::uint16_t port,
                 std::unique_ptr<LoadProtocol> protocol, Greeting greeting = Greeting::None);

  bool is_ready() const { return protocol_->is_ready(); }
  std::size_t in_flight() const { return in_flight_; }
  std::uint64_t take_count() { return std::exchange(count_, 0); }

  void send(std::size_t messages);
  void settle();
  // Called for the answers of one read.
  std::function<void(LoadConnection&, std::size_t)> on_answers = {};

 private:
  void on_readable() override;
  void on_writable() override { write(); }
  void write();

  EventLoop& loop_;
  std::unique_ptr<LoadProtocol> protocol_;
  SocketStream stream_;
  Bytes out_;
  std::size_t in_flight_ = 0;
  std::uint64_t count_ = 0;
  bool begun_ = false;
};

// Runs the loop until its time is over or the condition, asked at the end of each turn, holds.
void run_until(EventLoop& loop, std::optional<Duration> window, std::function<bool()> condition);

// Opens a few at a time, so that no accept queue is longer than its owner expects; all are ready afterwards.
std::vector<std::unique_ptr<LoadConnection>> open_connections(
    EventLoop& loop, const TlsContext& tls, std::uint16_t port, std::size_t count,
    const std::function<std::unique_ptr<LoadProtocol>(std::size_t)>& protocol);

}  // namespace windlass::bench
