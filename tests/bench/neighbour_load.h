// Loads a neighbour from one thread over our own event loop and TLS, as wss_load does with us: bytes are
// rendered before the run, replies are parsed no further than to know that they are right. What is said is a
// Dialogue's; nothing here knows a protocol.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "protocol/adapters/event_loop.h"
#include "protocol/adapters/tls_context.h"
#include "protocol/base/bytes.h"
#include "tests/bench/neighbour_server.h"
#include "tests/bench/neighbours.h"

namespace windlass::bench {

inline constexpr std::size_t kManyInFlight = 32;

// One connection's side of a protocol. What it appends to `out` leaves in one write.
class Dialogue {
 public:
  virtual ~Dialogue() = default;
  virtual void hello(Bytes& out) = 0;  // once TLS stands
  virtual bool is_open() const = 0;    // hello was answered
  virtual void begin(std::size_t operations, Bytes& out) = 0;
  // All that was received, in order. Returns how many operations it finished; the answers it owes go to
  // `out`.
  virtual std::size_t take(BytesView input, Bytes& out) = 0;
};

// Input that is cut anywhere, as a sequence of whole items: keeps the beginning of the last one.
class Unread final {
 public:
  // What is there, with what was kept. Valid until the next call of either.
  BytesView with(BytesView input) {
    if (kept_.empty()) return input;
    kept_ += input;
    return kept_;
  }
  // `rest` is the end of what with() returned.
  void keep(BytesView rest) { kept_ = Bytes{rest}; }

 private:
  Bytes kept_;
};

enum class Greeting : std::uint8_t {
  None,  // TLS from the first byte
  Line,  // the server says a line in clear text before it
};

enum class Part : std::uint8_t {
  Loaded,    // operations are begun on it, and counted
  Answering  // only answers
};

class NeighbourLoad final {
 public:
  NeighbourLoad(const NeighbourServer& server, const TlsContext& tls, Greeting greeting);
  ~NeighbourLoad();

  void connect(std::unique_ptr<Dialogue> dialogue, Part part);
  // Returns when every dialogue is open.
  void open();
  // Keeps `in_flight` operations on each loaded connection for `window`; returns when the last has finished.
  LoadSample run(std::size_t in_flight, Duration window);
  // All that were finished, ever.
  std::uint64_t operations() const { return operations_; }

 private:
  class Connection;
  class Wait;

  void wait_quiet();

  const NeighbourServer& server_;
  const TlsContext& tls_;
  Greeting greeting_;
  EventLoop loop_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::uint64_t operations_ = 0;
  bool sending_ = false;
};

// The client's side of TLS 1.3 that trusts `authority_file`.
std::unique_ptr<TlsContext> neighbour_tls(const std::string& authority_file);

}  // namespace windlass::bench
