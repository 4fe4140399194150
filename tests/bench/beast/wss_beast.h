// Echo servers on Boost.Beast to be measured against, each on the calling thread until stop(). Beast is slow
// to compile, so it is seen by one file alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "protocol/adapters/event_loop.h"
#include "protocol/adapters/tls_context.h"

namespace windlass::bench {

class EchoServer {
 public:
  virtual ~EchoServer() = default;
  virtual std::uint16_t port() const = 0;
  virtual void run() = 0;
  virtual void stop() = 0;  // from any thread
};

// As Beast's own examples have it: ssl_stream over tcp_stream, one read and one write per message.
std::unique_ptr<EchoServer> plain_beast(const std::string& certificate_file, const std::string& key_file);

// Beast's WebSocket over a stream of ours, which gathers writes until the input is
// drained and encrypts them with our TLS pump.
std::unique_ptr<EchoServer> corked_beast(const TlsContext& tls);

}  // namespace windlass::bench
