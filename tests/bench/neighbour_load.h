// Loads a neighbour from one thread, as wss_load does with us: bytes are rendered before the run, replies are
// parsed no further than to know that they are right. Some connections may only answer what the server hands
// to them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "protocol/adapters/event_loop.h"
#include "protocol/adapters/tls_context.h"
#include "protocol/base/bytes.h"
#include "tests/bench/load_connection.h"
#include "tests/bench/neighbour_server.h"
#include "tests/bench/neighbours.h"

namespace windlass::bench {

inline constexpr std::size_t kManyInFlight = 32;

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

enum class Part : std::uint8_t {
  Loaded,    // operations are begun on it, and counted
  Answering  // only answers
};

class NeighbourLoad final {
 public:
  NeighbourLoad(const NeighbourServer& server, const TlsContext& tls, Greeting greeting);

  void connect(std::unique_ptr<LoadProtocol> protocol, Part part);
  // Returns when every connection is ready.
  void open();
  // Keeps `in_flight` operations on each loaded connection for `window`; returns when the last has finished.
  LoadSample run(std::size_t in_flight, Duration window);
  // All that were finished, ever.
  std::uint64_t operations() const { return operations_; }

 private:
  void wait_for(bool (*is_so)(const LoadConnection&), const char* otherwise);

  const NeighbourServer& server_;
  const TlsContext& tls_;
  Greeting greeting_;
  EventLoop loop_;
  struct Member {
    std::unique_ptr<LoadConnection> connection;
    Part part;
  };
  std::vector<Member> members_;
  std::uint64_t operations_ = 0;
};

// The client's side of TLS 1.3 that trusts `authority_file`.
std::unique_ptr<TlsContext> neighbour_tls(const std::string& authority_file);

}  // namespace windlass::bench
