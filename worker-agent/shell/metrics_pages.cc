#include "worker-agent/shell/metrics_pages.h"

#include <string_view>
#include <utility>

#include "protocol/http/page_access.h"

namespace windlass::agent {
namespace {

constexpr const char* kText = "text/plain; charset=utf-8";

std::string_view path_of(const HttpRequest& request) {
  return std::string_view{request.target}.substr(0, request.target.find('?'));
}

}  // namespace

Result<std::unique_ptr<MetricsPages>> MetricsPages::listen(EventLoop& loop, const MetricsSettings& settings,
                                                           Sources sources) {
  std::unique_ptr<MetricsPages> pages{new MetricsPages{settings, std::move(sources)}};
  HttpListenerOptions options;
  options.address = settings.listen.host;
  options.port = settings.listen.port;
  // Without a token there is nothing to overhear that a stranger may not ask for.
  options.clear_text_anywhere = settings.anywhere || settings.open;
  options.asks_for_users = !settings.access.is_any() && !settings.open;
  options.body_bytes_max = 1024;
  auto tokens = read_access_tokens(settings.access);
  if (!tokens) return tokens.error();
  options.tokens = *std::move(tokens);
  if (settings.tls) {
    auto tls = TlsContext::server(*settings.tls);
    if (!tls) return tls.error();
    pages->tls_ = *std::move(tls);
    options.tls = pages->tls_.get();
  }
  auto listener = HttpListener::listen(loop, std::move(options), *pages);
  if (!listener) return listener.error();
  pages->listener_ = *std::move(listener);
  return pages;
}

MetricsPages::MetricsPages(const MetricsSettings& settings, Sources sources)
    : settings_(settings), sources_(std::move(sources)) {}

Result<Done> MetricsPages::reload() {
  auto tokens = read_access_tokens(settings_.access);
  if (!tokens) return tokens.error();
  if (tls_) {
    if (auto reloaded = tls_->reload(); !reloaded) return reloaded;
  }
  listener_->set_tokens(*std::move(tokens));
  return Done{};
}

bool MetricsPages::is_probe(const HttpRequest& request) const {
  const std::string_view path = path_of(request);
  return path == "/healthz" || path == "/readyz";
}

void MetricsPages::handle(HttpRequest request, HttpAnswer answer) {
  const std::string_view path = path_of(request);
  if (request.method != "GET" && request.method != "HEAD") {
    return answer(to_response({405, "E.HTTP.METHOD", "only GET is served here"}));
  }
  if (path == "/healthz") return answer({.content_type = kText, .body = "ok\n"});
  if (path == "/readyz") {
    const bool is_ready = sources_.is_ready();
    return answer({.status = static_cast<std::uint16_t>(is_ready ? 200 : 503),
                   .content_type = kText,
                   .body = is_ready ? "ready\n" : "no session\n"});
  }
  if (path != "/metrics") {
    return answer(to_response({404, "E.HTTP.NOT_FOUND", "/metrics, /healthz and /readyz are served here"}));
  }
  // User code that has the agent's own user cannot be told from the operator's programs; root can.
  if (request.user != 0 && sources_.is_user_shared()) request.is_stranger = true;
  if (auto refusal = page_refusal({settings_.access.is_any(), settings_.open, "metrics"}, request)) {
    return answer(*std::move(refusal));
  }
  answer({.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = sources_.metrics()});
}

}  // namespace windlass::agent
