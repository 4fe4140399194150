#include "scheduler/shell/admin_api.h"

#include <algorithm>
#include <array>
#include <utility>

#include "scheduler/shell/admin_calls.h"
#include "scheduler/shell/admin_json.h"

namespace windlass {
namespace {

enum class Guard : std::uint8_t { Open, Token, Metrics };

struct Route {
  std::string_view method;
  std::string_view path;
  Guard guard;
  void (AdminCalls::*call)(AdminCall&);
};

constexpr std::array kRoutes{
    Route{"GET", "/healthz", Guard::Open, &AdminCalls::health},
    Route{"GET", "/readyz", Guard::Open, &AdminCalls::readiness},
    Route{"GET", "/metrics", Guard::Metrics, &AdminCalls::metrics},
    Route{"GET", "/v1/workers", Guard::Token, &AdminCalls::workers},
    Route{"GET", "/v1/workers/{tenant}/{id}", Guard::Token, &AdminCalls::worker},
    Route{"POST", "/v1/workers/{tenant}/{id}/drain", Guard::Token, &AdminCalls::drain},
    Route{"POST", "/v1/workers/{tenant}/{id}/reset", Guard::Token, &AdminCalls::reset},
    Route{"POST", "/v1/workers/{tenant}/{id}/revoke", Guard::Token, &AdminCalls::revoke},
    Route{"POST", "/v1/workers/{tenant}/{id}/allow", Guard::Token, &AdminCalls::allow},
    Route{"POST", "/v1/workers/{tenant}/{id}/resume", Guard::Token, &AdminCalls::resume},
    Route{"POST", "/v1/workers/{tenant}/{id}/rotate", Guard::Token, &AdminCalls::rotate},
    Route{"POST", "/v1/workers/{tenant}/{id}/commands", Guard::Token, &AdminCalls::submit},
    Route{"GET", "/v1/denied", Guard::Token, &AdminCalls::denied},
    Route{"POST", "/v1/apps/{tenant}/{id}/commands", Guard::Token, &AdminCalls::submit_to_app},
    Route{"POST", "/v1/languages/{tenant}/{id}/commands", Guard::Token, &AdminCalls::submit_to_language},
    Route{"GET", "/v1/commands", Guard::Token, &AdminCalls::commands},
    Route{"GET", "/v1/commands/{tenant}/{id}", Guard::Token, &AdminCalls::command},
    Route{"GET", "/v1/messages", Guard::Token, &AdminCalls::messages},
    Route{"GET", "/v1/packages/{digest}", Guard::Token, &AdminCalls::package},
    Route{"PUT", "/v1/packages/{digest}", Guard::Token, &AdminCalls::upload},
    Route{"GET", "/v1/apps", Guard::Token, &AdminCalls::apps},
    Route{"GET", "/v1/apps/{tenant}/{id}", Guard::Token, &AdminCalls::app},
    Route{"PUT", "/v1/apps/{tenant}/{id}", Guard::Token, &AdminCalls::deploy},
    Route{"DELETE", "/v1/apps/{tenant}/{id}", Guard::Token, &AdminCalls::undeploy},
    Route{"POST", "/v1/apps/{tenant}/{id}/assign", Guard::Token, &AdminCalls::assign},
    Route{"POST", "/v1/apps/{tenant}/{id}/unassign", Guard::Token, &AdminCalls::unassign},
    Route{"POST", "/v1/apps/{tenant}/{id}/split", Guard::Token, &AdminCalls::split},
    Route{"POST", "/v1/apps/{tenant}/{id}/invoke", Guard::Token, &AdminCalls::invoke},
    Route{"GET", "/v1/runtimes", Guard::Token, &AdminCalls::runtimes},
};

// Whether the path is the route's; then `names` holds what stands for its {names}.
bool matches(std::string_view pattern, const std::vector<std::string>& path,
             std::vector<std::string>& names) {
  names.clear();
  std::size_t at = 0;
  while (!pattern.empty()) {
    pattern.remove_prefix(1);  // its slash
    const std::string_view part = pattern.substr(0, pattern.find('/'));
    pattern.remove_prefix(part.size());
    if (at == path.size()) return false;
    if (part.starts_with('{')) {
      if (path[at].empty()) return false;
      names.push_back(path[at]);
    } else if (part != path[at]) {
      return false;
    }
    ++at;
  }
  return at == path.size();
}

bool serves(const Route& route, std::string_view method) {
  return route.method == method || (route.method == "GET" && method == "HEAD");
}

HttpResponse unauthorized(bool has_token) {
  HttpResponse response = to_response({401, has_token ? "E.AUTH.INVALID_TOKEN" : "E.AUTH.MISSING_TOKEN",
                                       has_token ? "the bearer token is not valid here"
                                                 : "send the admin token as 'Authorization: Bearer ...'"});
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

HttpResponse not_allowed(std::string_view method, const std::string& allowed) {
  HttpResponse response =
      to_response({405, "E.HTTP.METHOD", std::string{method} + " is not served here; allowed: " + allowed});
  response.headers.emplace_back("Allow", allowed);
  return response;
}

}  // namespace

AdminApi::AdminApi(Control& control, Metrics& metrics, AdminOptions options)
    : calls_(std::make_unique<AdminCalls>(control, metrics, std::move(options))) {}

AdminApi::~AdminApi() = default;

void AdminApi::start_draining() {
  calls_->start_draining();
}

std::vector<AdminRoute> AdminApi::routes() {
  std::vector<AdminRoute> routes;
  for (const Route& each : kRoutes) routes.push_back({each.method, each.path});
  return routes;
}

void AdminApi::handle_gone(std::uint64_t request) {
  calls_->forget_waiter(request);
}

// Health, readiness and metrics: answered at once, whoever else waits.
bool AdminApi::is_probe(const HttpRequest& request) const {
  const std::string_view path = std::string_view{request.target}.substr(0, request.target.find('?'));
  return std::ranges::any_of(kRoutes, [&](const Route& each) {
    return each.guard != Guard::Token && each.path == path && serves(each, request.method);
  });
}

void AdminApi::handle(HttpRequest request, HttpAnswer answer) {
  auto target = parse_target(request.target);
  if (!target) return answer(to_response(problem_of(target.error())));
  AdminCall call{std::move(request), std::move(*target), {}, std::move(answer)};
  std::string allowed;
  for (const Route& route : kRoutes) {
    if (!matches(route.path, call.target.path, call.names)) continue;
    if (!serves(route, call.request.method)) {
      allowed +=
          (allowed.empty() ? "" : ", ") + std::string{route.method == "GET" ? "GET, HEAD" : route.method};
      continue;
    }
    const bool is_open =
        route.guard == Guard::Open || (route.guard == Guard::Metrics && calls_->options().metrics_are_open);
    if (!is_open && !call.request.is_authorized) return call.answer(unauthorized(call.request.has_token));
    return (calls_.get()->*route.call)(call);
  }
  if (!allowed.empty()) return call.answer(not_allowed(call.request.method, allowed));
  call.answer(to_response(
      {404, "E.HTTP.NOT_FOUND", "nothing is served at this path; docs/openapi.json lists what is"}));
}

}  // namespace windlass
