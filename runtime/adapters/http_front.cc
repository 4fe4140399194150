#include "runtime/adapters/http_front.h"

#include <algorithm>
#include <utility>

#include "protocol/base/limits.h"
#include "runtime/adapters/function_json.h"
#include "runtime/adapters/runtime_metrics.h"
#include "runtime/adapters/trace_context.h"

namespace windlass::runtime {
namespace {

std::string_view value_of(const TextPairs& pairs, std::string_view name) {
  const auto found = std::ranges::find(pairs, name, &std::pair<std::string, std::string>::first);
  return found == pairs.end() ? std::string_view{} : std::string_view{found->second};
}

// How a caller is told of a cause.
struct Answer {
  std::uint16_t status;
  std::string_view code;
};

Answer answer_of(Cause cause) {
  switch (cause) {
    case Cause::None:
      break;
    case Cause::FunctionFailed:
      return {500, "E.INVOCATION.FUNCTION_FAILED"};
    case Cause::LoadFailed:
      return {500, "E.INVOCATION.LOAD_FAILED"};
    case Cause::TimedOut:
      return {504, "E.INVOCATION.TIMED_OUT"};
    case Cause::WorkerLost:
      return {502, "E.INVOCATION.WORKER_LOST"};
    case Cause::Orphaned:
      return {502, "E.INVOCATION.ORPHANED"};
    case Cause::UnknownFunction:
      return {404, "E.INVOCATION.UNKNOWN_FUNCTION"};
    case Cause::Overloaded:
      return {429, "E.INVOCATION.OVERLOADED"};
    case Cause::TooLarge:
      return {413, "E.INVOCATION.TOO_LARGE"};
    case Cause::Cancelled:
      return {503, "E.INVOCATION.CANCELLED"};
    case Cause::NoWorker:
      return {503, "E.INVOCATION.NO_WORKER"};
    case Cause::JobHostFailed:
      return {503, "E.INVOCATION.JOB_HOST_FAILED"};
    case Cause::Stopping:
      return {503, "E.INVOCATION.STOPPING"};
  }
  return {500, "E.INTERNAL"};
}

std::string_view sentence_of(Cause cause) {
  switch (answer_of(cause).status) {
    case 404:
      return "there is no such function";
    case 413:
      return "the request is larger than a worker can be sent";
    case 429:
      return "all workers of this application are busy; try again later";
    case 502:
      return "the worker was lost before it answered";
    case 503:
      return "no worker of this application is ready; try again later";
    case 504:
      return "the function did not answer in time";
    default:
      return cause == Cause::LoadFailed ? "the function could not be loaded" : "the function failed";
  }
}

HttpResponse problem(std::uint16_t status, std::string_view code, std::string_view detail) {
  HttpResponse response = to_response({status, std::string{code}, std::string{detail}});
  if (status == 429 || status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

HttpResponse refusal_of(const Error& error) {
  const bool is_full = error.code == ErrorCode::LimitCapacity || error.code == ErrorCode::LimitRate;
  return problem(is_full ? 429 : 503, to_string(error.code), error.reason);
}

std::string output_of(const Function& function) {
  for (const Binding& each : function.bindings) {
    if (in_lower_case(each.type) == "http" && each.direction != "in") return each.name;
  }
  return "$return";
}

}  // namespace

// The function that a request means, and what is left of the request for it.
struct HttpFront::Chosen {
  Target target;  // a copy: routes may change before the answer
  RouteParams params;
  std::string path;
  HttpQuery query;
  std::string host;
};

HttpFront::HttpFront(HttpFrontOptions options, HttpFrontHost& host, std::uint64_t seed)
    : options_(std::move(options)), host_(host), random_(seed) {}

HttpFront::~HttpFront() = default;

void HttpFront::refresh() {
  is_stale_ = false;
  targets_.clear();
  sites_.clear();
  for (const HttpFrontHost::Application& application : host_.http_applications()) {
    Site& site = sites_[in_lower_case(application.key.application_id)];
    site.application = application.key.application_id;
    for (const FunctionRef& function : application.functions) add(site, application, function);
  }
}

void HttpFront::add(Site& site, const HttpFrontHost::Application& application, const FunctionRef& function) {
  const Binding* const trigger = function->trigger();
  if (trigger == nullptr || in_lower_case(trigger->type) != "httptrigger" || function->is_disabled) return;
  const auto http = read_http_trigger(*trigger);
  const auto complain = [&](const std::string& reason) {
    problems_.push_back(application.key.application_id + ": function '" + function->name +
                        "' is not served over HTTP: " + reason);
  };
  if (!http) return complain(http.error().reason);
  std::string text = application.route_prefix;
  text.append("/").append(http->has_route && !http->route.empty() ? http->route : function->name);
  Result<Route> route = Route::parse(text);
  if (!route) return complain(route.error().reason);
  site.routes.add({*std::move(route), http->methods, targets_.size()});
  targets_.push_back({application.key, function, trigger->name, output_of(*function), http->is_anonymous});
}

// By the host's first label, else by the path's first segment, else whoever alone knows the path.
RouteTable::Found HttpFront::find(const std::vector<std::string>& segments, std::string_view host,
                                  std::string_view method) const {
  if (const auto site = sites_.find(host.substr(0, host.find_first_of(".:"))); site != sites_.end()) {
    return site->second.routes.find(segments, method);
  }
  if (!segments.empty()) {
    if (const auto site = sites_.find(in_lower_case(segments.front())); site != sites_.end()) {
      auto found = site->second.routes.find({segments.begin() + 1, segments.end()}, method);
      if (found.target || !found.allowed.empty()) return found;
    }
  }
  RouteTable::Found only;
  for (const auto& [name, site] : sites_) {
    RouteTable::Found found = site.routes.find(segments, method);
    if (!found.target && found.allowed.empty()) continue;
    // Two applications know it: guessing would send somebody's request to somebody else.
    if (only.target && found.target) return {};
    if (!only.target) only = std::move(found);
  }
  return only;
}

bool HttpFront::is_allowed(const Target& target, const HttpRequest& request, const HttpQuery& query) const {
  if (target.is_anonymous) return true;
  if (!options_.key) return options_.is_private;
  const std::string_view shown = header_of(request.headers, "x-functions-key");
  return shown.empty() ? query.shows_key : is_key(*options_.key, shown);
}

// Looks at the head alone, so that a refusal may come before the body.
std::variant<HttpFront::Chosen, HttpResponse> HttpFront::choose(const HttpRequest& request) {
  if (is_stale_) refresh();
  const std::string_view target = request.target;
  const std::size_t mark = std::min(target.find('?'), target.size());
  const auto segments = path_segments(target.substr(0, mark));
  if (!segments || !target.starts_with('/')) {
    return problem(400, "E.HTTP.SYNTAX", "the path has a wrong escape, or does not begin with a slash");
  }
  auto query = read_query(target.substr(std::min(mark + 1, target.size())), options_.key);
  if (!query) {
    return problem(400, "E.HTTP.SYNTAX",
                   "the query has more than " + std::to_string(limits::kHttpQueryPairsMax) + " pairs");
  }
  std::string host = in_lower_case(header_of(request.headers, "host"));
  RouteTable::Found found = find(*segments, host, request.method);
  if (sites_.empty()) {
    // Nobody can say yet what is served here: agents are on their way to a runtime that was just started.
    return problem(503, "E.HTTP.NO_APPLICATION", "no application is served here yet; try again later");
  }
  if (!found.target && found.allowed.empty()) {
    return problem(404, "E.HTTP.NOT_FOUND", "no function is served at this path");
  }
  if (!found.target) {
    HttpResponse response = problem(405, "E.HTTP.METHOD", "the function at this path takes other methods");
    std::string allow;
    for (const std::string& each : found.allowed) allow += (allow.empty() ? "" : ", ") + each;
    response.headers.emplace_back("Allow", allow);
    return response;
  }
  const Target& chosen = targets_[*found.target];
  if (!is_allowed(chosen, request, *query)) {
    return problem(401, "E.AUTH.UNAUTHENTICATED",
                   options_.key ? "the function wants its key, in x-functions-key or ?code="
                                : "the function is not anonymous and no key is set here; set http.key_file");
  }
  return Chosen{chosen, std::move(found.params), std::string{target.substr(0, mark)}, *std::move(query),
                std::move(host)};
}

std::optional<HttpResponse> HttpFront::refuse(const HttpRequest& head) {
  auto chosen = choose(head);
  auto* response = std::get_if<HttpResponse>(&chosen);
  std::optional<HttpResponse> refused;
  if (response != nullptr) {
    refused = std::move(*response);
  } else if (const auto ready = host_.http_ready(); !ready) {
    refused = refusal_of(ready.error());
  }
  if (refused) host_.http_answered(refused->status);
  return refused;
}

void HttpFront::handle(HttpRequest request, HttpAnswer plain_answer) {
  HttpAnswer answer = [this, plain = std::move(plain_answer)](HttpResponse response) {
    host_.http_answered(response.status);
    plain(std::move(response));
  };
  auto chosen = choose(request);
  if (auto* refused = std::get_if<HttpResponse>(&chosen)) return answer(std::move(*refused));
  invoke(std::get<Chosen>(std::move(chosen)), std::move(request), answer);
}

void HttpFront::invoke(Chosen chosen, HttpRequest request, const HttpAnswer& answer) {
  const Target& target = chosen.target;
  HttpInput input;
  input.binding = target.trigger;
  input.method = std::move(request.method);
  input.headers = joined_headers(request.headers);
  const std::string_view forwarded = value_of(input.headers, "x-forwarded-proto");
  input.url = (forwarded.empty() ? options_.scheme : std::string{forwarded}) + "://" +
              (chosen.host.empty() ? "localhost" : chosen.host) + chosen.path;
  if (!chosen.query.text.empty()) input.url += '?' + chosen.query.text;
  input.trace =
      continue_trace(value_of(input.headers, "traceparent"), value_of(input.headers, "tracestate"), random_);
  input.content_type = in_lower_case(request.content_type);
  input.query = std::move(chosen.query.pairs);
  input.params = std::move(chosen.params);
  input.body = std::move(request.body);
  static const TextMap kNone;
  const TextMap* const capabilities = host_.http_capabilities(target.job_host);
  HttpFrontHost::Call call{target.job_host, target.function->name,
                           std::make_shared<const std::string>(write_http_invocation_body(
                               input, capabilities == nullptr ? kNone : *capabilities)),
                           input.trace};
  const auto taken = host_.http_invoke(
      std::move(call), [this, answer, output = target.output, id = request.id](const Outcome& outcome) {
        under_way_.erase(id);
        answer(response_of(outcome, output));
      });
  if (!taken) return answer(refusal_of(taken.error()));
  under_way_.emplace(request.id, *taken);
}

void HttpFront::handle_gone(std::uint64_t request) {
  const auto found = under_way_.find(request);
  if (found != under_way_.end()) host_.http_cancel(found->second);
}

HttpResponse HttpFront::response_of(const Outcome& outcome, const std::string& output_binding) const {
  if (outcome.settlement != Settlement::Complete) {
    std::string detail{sentence_of(outcome.cause)};
    if (options_.shows_errors && !outcome.reason.empty()) detail += ": " + outcome.reason;
    const Answer answer = answer_of(outcome.cause);
    return problem(answer.status, answer.code, detail);
  }
  Result<HttpOutput> output = read_http_output(outcome.body, output_binding);
  if (!output) {
    return problem(502, to_string(output.error().code),
                   options_.shows_errors ? output.error().reason : "the function's answer is no HTTP answer");
  }
  return {.status = output->status,
          .content_type = std::move(output->content_type),
          .body = std::move(output->body),
          .headers = std::move(output->headers),
          .may_be_cached = true};
}

}  // namespace windlass::runtime
