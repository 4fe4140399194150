// A client that costs little beside TLS: frames are masked once before the run and echoes are counted, not
// parsed. Every server is loaded by this one, from a thread of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "protocol/adapters/event_loop.h"
#include "protocol/adapters/tls_context.h"
#include "protocol/base/bytes.h"

namespace windlass::bench {

struct LoadOptions {
  std::uint16_t port = 0;
  const TlsContext* tls = nullptr;
  std::size_t connections = 64;
  std::size_t in_flight = 32;  // messages of each connection
  std::size_t message_bytes = 512;
};

class LoadClient final {
 public:
  // Connects and upgrades all connections before it returns.
  LoadClient(EventLoop& loop, const LoadOptions& options);
  ~LoadClient();

  struct Outcome {
    double per_second = 0;       // echoes counted in the window
    std::uint64_t messages = 0;  // all that were echoed
  };
  // Keeps every connection's messages in flight for `window`. Returns when the last echo has come back.
  Outcome run(Duration window);

  // Keeps the connections until the process is told to end.
  void hold();

 private:
  class Connection;
  class Stopper;

  EventLoop& loop_;
  Bytes frames_;  // one masked message, in_flight times
  std::size_t frame_bytes_ = 0;
  std::size_t echo_bytes_ = 0;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace windlass::bench
