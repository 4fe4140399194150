// The agent's own listener for scrapers and probes: /metrics for whoever has the token, where one is set, or
// else for root and the agent's user, and /healthz and /readyz for everybody.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "protocol/http/http_listener.h"
#include "worker-agent/shell/config.h"

namespace windlass::agent {

class MetricsPages final : private HttpHandler {
 public:
  struct Sources {
    std::function<std::string()> metrics;
    std::function<bool()> is_ready;
    std::function<bool()> is_user_shared;  // user code runs as the agent's user
  };

  // `loop` must outlive the pages.
  static Result<std::unique_ptr<MetricsPages>> listen(EventLoop& loop, const MetricsSettings& settings,
                                                      Sources sources);
  std::uint16_t port() const { return listener_->port(); }
  const TlsContext* tls() const { return tls_.get(); }
  Result<Done> reload();  // tokens and certificate

 private:
  MetricsPages(const MetricsSettings& settings, Sources sources);
  bool is_probe(const HttpRequest& request) const override;
  void handle(HttpRequest request, HttpAnswer answer) override;

  MetricsSettings settings_;
  Sources sources_;
  std::unique_ptr<TlsContext> tls_;
  std::unique_ptr<HttpListener> listener_;
};

}  // namespace windlass::agent
