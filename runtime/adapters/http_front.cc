#include "runtime/adapters/http_front.h"

#include <algorithm>
#include <utility>

#include "protocol/base/limits.h"
#include "runtime/adapters/function_json.h"
#include "runtime/adapters/http_problem.h"

namespace windlass::runtime {
namespace {

constexpr std::size_t kProblemsToldMax = 4096;

std::string output_of(const Function& function) {
  for (const Binding& each : function.bindings) {
    if (in_lower_case(each.type) == "http" && each.direction != "in") return each.name;
  }
  return "$return";
}

void add_to(HttpResponse& response, const TextPairs& headers) {
  for (const auto& each : headers) {
    if (header_of(response.headers, in_lower_case(each.first)).empty()) response.headers.push_back(each);
  }
}

}  // namespace

HttpFront::HttpFront(HttpFrontOptions options, HttpFrontHost& host, std::uint64_t seed)
    : options_(std::move(options)), host_(host), random_(seed) {}

HttpFront::~HttpFront() = default;

void HttpFront::refresh() {
  is_stale_ = false;
  job_hosts_.clear();
  targets_.clear();
  for (auto& [name, site] : sites_) away_.insert_or_assign(name, std::move(site));
  sites_.clear();
  parsed_before_ = std::exchange(parsed_, {});
  for (const HttpFrontHost::Application& application : host_.http_applications()) {
    Site& site = sites_[in_lower_case(application.key.application_id)];
    site.application = application.key.application_id;
    job_hosts_.push_back(application.key);
    for (const FunctionRef& function : application.functions) add(site, application, function);
  }
  parsed_before_.clear();
  absent_.clear();
  for (const auto& each : host_.http_absent()) {
    absent_.insert_or_assign(in_lower_case(each.application_id), each.has_worker);
  }
  std::erase_if(away_, [&](const auto& each) { return !absent_.contains(each.first); });
  is_awaiting_ = host_.http_awaits();
  has_unseen_ = host_.http_has_unseen();
}

std::vector<std::string> HttpFront::poll_problems() {
  if (is_stale_) refresh();
  return std::exchange(problems_, {});
}

void HttpFront::complain(std::string problem) {
  if (told_.size() >= kProblemsToldMax) return;
  if (told_.insert(problem).second) problems_.push_back(std::move(problem));
}

void HttpFront::warn_of_outputs(const HttpFrontHost::Application& application, const Function& function) {
  for (const std::string& each : output_warnings(function)) complain(application.key.text() + ": " + each);
}

Result<Route> HttpFront::route_of(const FunctionRef& function, const std::string& text) {
  auto known = parsed_before_.extract({function, text});
  if (!known.empty()) return parsed_.insert(std::move(known)).position->second;
  Result<Route> route = Route::parse(text);
  if (route) parsed_.insert_or_assign({function, text}, *route);
  return route;
}

void HttpFront::add(Site& site, const HttpFrontHost::Application& application, const FunctionRef& function) {
  const Binding* const trigger = function->trigger();
  if (trigger == nullptr || in_lower_case(trigger->type) != "httptrigger" || function->is_disabled) return;
  const auto http = read_http_trigger(*trigger);
  const auto refuse = [&](const std::string& reason) {
    complain(application.key.text() + ": function '" + function->name +
             "' is not served over HTTP: " + reason);
  };
  if (!http) return refuse(http.error().reason);
  std::string_view own = http->has_route && !http->route.empty() ? http->route : function->name;
  while (own.starts_with('/')) own.remove_prefix(1);  // people write "/orders" and mean "orders"
  const std::string text = application.route_prefix + "/" + std::string{own};
  Result<Route> route = route_of(function, text);
  if (!route) return refuse(route.error().reason);
  if (site.patterns + route->patterns() > kPatternsMax) {
    return refuse("the routes of the application have more than " + std::to_string(kPatternsMax) +
                  " regular expressions together");
  }
  site.patterns += route->patterns();
  warn_of_outputs(application, *function);
  site.routes.add({*std::move(route), http->methods, targets_.size()});
  targets_.push_back({application.key, function, trigger->name, output_of(*function), http->level});
}

// By the host's first label, else by the path's first segment, else whoever alone knows the path.
HttpFront::Sought HttpFront::find(const std::vector<std::string>& segments, std::string_view host,
                                  std::string_view method) const {
  if (const auto site = sites_.find(host.substr(0, host.find_first_of(".:"))); site != sites_.end()) {
    return {site->second.routes.find(segments, method)};
  }
  if (!segments.empty()) {
    if (const auto site = sites_.find(in_lower_case(segments.front())); site != sites_.end()) {
      // Nobody else gets it, or a route that takes everything would get what names another application.
      return {site->second.routes.find({segments.begin() + 1, segments.end()}, method)};
    }
  }
  if (options_.takes_named_only) return {};
  RouteTable::Found only;
  for (const auto& [name, site] : sites_) {
    RouteTable::Found found = site.routes.find(segments, method);
    if (!found.target && found.allowed.empty()) continue;
    // Two applications know it: guessing would send somebody's request to somebody else.
    if (only.target && found.target) return {.found = {}, .is_shared = true};
    if (!only.target) only = std::move(found);
  }
  return {std::move(only)};
}

// The request may be for an application that is not here. Either it names an absent application, or it names
// none, and its path belonged to an absent application, could belong to one, or is unknown here.
std::string_view HttpFront::awaited(const std::vector<std::string>& segments, std::string_view host,
                                    std::string_view method, const Sought& sought) const {
  const std::string label{host.substr(0, host.find_first_of(".:"))};
  const std::string first = segments.empty() ? std::string{} : in_lower_case(segments.front());
  for (const std::string& name : {label, first}) {
    if (sites_.contains(name)) return {};
    const auto found = absent_.find(name);
    if (found == absent_.end()) continue;
    return found->second ? "the application's workers are assigned and not back yet; try again later"
                         : "the application has no worker at the moment; try again later";
  }
  if (is_awaiting_ && !sought.is_found() && !sought.is_shared) {
    return "the scheduler has not said yet which applications are served here; try again later";
  }
  if (options_.takes_named_only) return {};  // whoever comes, a path that names nobody is not served
  constexpr std::string_view kMayCome =
      "this path may belong to an application whose workers are assigned and not back yet; try again later";
  constexpr std::string_view kMayLackWorkers =
      "this path may belong to an application that has no worker at the moment; try again later";
  if (has_unseen_) return kMayCome;
  for (const auto& [name, site] : away_) {
    if (Sought{site.routes.find(segments, method)}.is_found())
      return absent_.find(name)->second ? kMayCome : kMayLackWorkers;
  }
  if (sought.is_found() || sought.is_shared || absent_.empty()) return {};
  const bool has_worker = std::ranges::any_of(absent_, [](const auto& each) { return each.second; });
  return has_worker ? kMayCome : kMayLackWorkers;
}

// A foreign host name or web page must not act for the browser's user.
std::optional<HttpResponse> HttpFront::refuse_stranger(const HttpRequest& request,
                                                       std::string_view host) const {
  if (!options_.hosts.allows(host)) {
    return http_problem(421, "E.HTTP.HOST", "this server is not called by this name here; see http.hosts");
  }
  const std::string_view origin = header_of(request.headers, "origin");
  const std::string_view forwarded = forwarded_scheme(request.headers);
  const std::string own =
      std::string{forwarded.empty() ? options_.scheme : forwarded}.append("://").append(host);
  if (!options_.origins.allows(origin, own)) {
    return http_problem(403, "E.HTTP.ORIGIN",
                        "pages of this origin may not call functions; see http.origins");
  }
  const bool is_preflight = request.method == "OPTIONS" && !origin.empty() &&
                            !header_of(request.headers, "access-control-request-method").empty();
  if (!is_preflight) return std::nullopt;
  HttpResponse response;
  response.status = 204;
  response.headers = options_.origins.preflight_headers(
      origin, header_of(request.headers, "access-control-request-headers"));
  return response;
}

// Looks at the head alone, so that a refusal may come before the body.
std::variant<HttpFront::Chosen, HttpResponse> HttpFront::choose(const HttpRequest& request) {
  if (is_stale_) refresh();
  std::string host = in_lower_case(header_of(request.headers, "host"));
  if (auto refused = refuse_stranger(request, host)) return *std::move(refused);
  const std::string_view target = request.target;
  const std::size_t mark = std::min(target.find('?'), target.size());
  auto path = read_path(target.substr(0, mark));
  if (!path || !target.starts_with('/')) {
    return http_problem(400, "E.HTTP.SYNTAX", "the path has a wrong escape, or does not begin with a slash");
  }
  Sought sought = find(path->segments, host, request.method);
  RouteTable::Found& found = sought.found;
  if (const std::string_view why = awaited(path->segments, host, request.method, sought); !why.empty()) {
    return http_problem(503, "E.HTTP.NO_APPLICATION", why);
  }
  // Where requests must name their application, those that may come are known by name.
  if (sites_.empty() && (!options_.takes_named_only || absent_.empty())) {
    // Nobody can say yet what is served here: agents are on their way to a runtime that was just started.
    return http_problem(503, "E.HTTP.NO_APPLICATION", "no application is served here yet; try again later");
  }
  if (!sought.is_found()) {
    return http_problem(404, "E.HTTP.NOT_FOUND",
                        sought.is_shared
                            ? "functions of several applications are served at this path; use "
                              "/APPLICATION/... to say which is meant"
                            : "no function is served at this path; a path may begin with /APPLICATION/...");
  }
  if (!found.target) {
    HttpResponse response =
        http_problem(405, "E.HTTP.METHOD", "the function at this path takes other methods");
    std::string allow;
    for (const std::string& each : found.allowed) allow += (allow.empty() ? "" : ", ") + each;
    response.headers.emplace_back("Allow", allow);
    return response;
  }
  const Target& chosen = targets_[*found.target];
  const HttpDoor door{chosen.job_host.application_id, chosen.function->name, chosen.level};
  const IsKey is_key = [&](std::string_view shown) { return opens(options_.keys, door, shown); };
  auto query = read_query(target.substr(std::min(mark + 1, target.size())), is_key);
  if (!query) {
    return http_problem(400, "E.HTTP.SYNTAX",
                        "the query has more than " + std::to_string(limits::kHttpQueryPairsMax) + " pairs");
  }
  const std::string_view shown = header_of(request.headers, "x-functions-key");
  const bool is_open = door.level == AuthLevel::Anonymous || options_.needs_no_keys;
  if (!is_open && !(shown.empty() ? query->shows_key : is_key(shown))) {
    return http_problem(401, "E.AUTH.UNAUTHENTICATED",
                        options_.keys.is_empty()
                            ? "the function wants a key and none is set here; see http.keys_file"
                            : "the function wants its key, in x-functions-key or ?code=");
  }
  return Chosen{chosen, std::move(found.params), std::move(path->text), *std::move(query), std::move(host)};
}

std::optional<HttpResponse> HttpFront::refuse(const HttpRequest& head) {
  auto chosen = choose(head);
  auto* response = std::get_if<HttpResponse>(&chosen);
  std::optional<HttpResponse> refused;
  if (response != nullptr) {
    refused = std::move(*response);
  } else if (const auto ready = host_.http_ready(); !ready) {
    refused = http_refusal(ready.error());
  }
  if (!refused) return refused;
  add_to(*refused, options_.origins.headers(header_of(head.headers, "origin")));
  host_.http_answered(refused->status);
  return refused;
}

void HttpFront::handle(HttpRequest request, HttpAnswer plain_answer) {
  HttpAnswer answer =
      [this, plain = std::move(plain_answer),
       cors = options_.origins.headers(header_of(request.headers, "origin"))](HttpResponse response) {
        add_to(response, cors);
        host_.http_answered(response.status);
        plain(std::move(response));
      };
  auto chosen = choose(request);
  if (auto* refused = std::get_if<HttpResponse>(&chosen)) return answer(std::move(*refused));
  invoke(std::get<Chosen>(chosen), std::move(request), answer);
}

void HttpFront::handle_gone(std::uint64_t request) {
  const auto found = under_way_.find(request);
  if (found != under_way_.end()) host_.http_cancel(found->second);
}

}  // namespace windlass::runtime
