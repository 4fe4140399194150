// A small HTTP listener for a scraper: GET /metrics and GET /healthz, one request per connection. Bounded in
// connections, bytes and time, since it may be open to a network.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "protocol/adapters/event_loop.h"
#include "protocol/adapters/readiness.h"

namespace windlass::agent {

struct HttpPage {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};
};

class MetricsHttp final : private ReadinessEvents, private TurnEnd {
 public:
  using Pages = std::function<HttpPage(std::string_view path)>;  // status 404 for a path that is none

  // `address` is numeric. `loop` must outlive the listener.
  static Result<std::unique_ptr<MetricsHttp>> listen(EventLoop& loop, const std::string& address,
                                                     std::uint16_t port, Pages pages);
  ~MetricsHttp() override;
  std::uint16_t port() const { return port_; }

 private:
  class Client;

  MetricsHttp(EventLoop& loop, Socket listener, Pages pages);
  void on_readable() override;
  void on_writable() override {}
  void on_turn_end(TurnPhase phase) override;

  EventLoop& loop_;
  Pages pages_;
  std::uint16_t port_;
  std::unique_ptr<Readiness> listener_;
  std::vector<std::unique_ptr<Client>> clients_;
};

}  // namespace windlass::agent
