// A client that loads a server with messages that are answered one by one, from a thread of its own: as many
// as it takes with a number in flight, or at a given rate.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/bench/load_connection.h"

namespace windlass::bench {

// Bare echoes over WebSocket: frames are masked once before the run and echoes are counted, not parsed.
std::unique_ptr<LoadProtocol> echo_protocol(std::size_t message_bytes);

struct LoadOptions {
  std::uint16_t port = 0;
  const TlsContext* tls = nullptr;
  std::size_t connections = 64;
  std::function<std::unique_ptr<LoadProtocol>(std::size_t)> protocol;  // of the connection with this number
};

class LoadClient final {
 public:
  // All connections are ready when it returns.
  LoadClient(EventLoop& loop, const LoadOptions& options);

  struct Outcome {
    double per_second = 0;       // answers counted in the window
    std::uint64_t messages = 0;  // all that were answered
  };
  // Keeps `in_flight` messages of every connection under way. Returns when the last answer has come back.
  Outcome run(std::size_t in_flight, Duration window);

  struct Scatter {
    std::size_t in_flight = 0;  // in all
    std::size_t busy = 0;       // connections, the first ones
    std::uint64_t seed = 0;
  };
  // Each message goes to a busy connection chosen at random.
  Outcome run_scattered(const Scatter& scatter, Duration window);

  // Sends at this rate, whatever comes back, one connection after the other. The time from when each message
  // was due to its answer, in seconds, sorted.
  std::vector<double> run_paced(double per_second, Duration window);

  // Keeps the connections until the process is told to end.
  void hold();

 private:
  Outcome measure(Duration window);
  void wait_quiet();

  EventLoop& loop_;
  std::vector<std::unique_ptr<LoadConnection>> connections_;
};

}  // namespace windlass::bench
