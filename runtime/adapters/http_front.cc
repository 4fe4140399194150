#include "runtime/adapters/http_front.h"

#include <algorithm>
#include <utility>

#include "protocol/crypto/percent_encoding.h"
#include "runtime/adapters/function_json.h"
#include "runtime/adapters/runtime_metrics.h"
#include "runtime/adapters/trace_context.h"

namespace windlass::runtime {
namespace {

std::string in_lower_case(std::string_view text) {
  std::string all{text};
  std::ranges::transform(all, all.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return all;
}

std::string decoded_query(std::string_view text) {
  std::string plain{text};
  std::ranges::replace(plain, '+', ' ');
  return percent_decode(plain).value_or(plain);
}

TextPairs query_pairs(std::string_view query) {
  TextPairs pairs;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    const std::size_t equal = std::min(pair.find('='), pair.size());
    if (!pair.empty()) {
      std::string name = decoded_query(pair.substr(0, equal));
      std::string value = decoded_query(pair.substr(std::min(equal + 1, pair.size())));
      const auto same = std::ranges::find(pairs, name, &std::pair<std::string, std::string>::first);
      if (same != pairs.end()) {
        same->second += "," + value;
      } else {
        pairs.emplace_back(std::move(name), std::move(value));
      }
    }
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return pairs;
}

std::string_view value_of(const TextPairs& pairs, std::string_view name) {
  const auto found = std::ranges::find(pairs, name, &std::pair<std::string, std::string>::first);
  return found == pairs.end() ? std::string_view{} : std::string_view{found->second};
}

TextPairs header_pairs(const TextPairs& headers) {
  TextPairs pairs;
  for (const auto& [name, value] : headers) {
    std::string lower = in_lower_case(name);
    const auto same = std::ranges::find(pairs, lower, &std::pair<std::string, std::string>::first);
    if (same != pairs.end()) {
      same->second += (lower == "cookie" ? "; " : ", ") + value;
    } else {
      pairs.emplace_back(std::move(lower), value);
    }
  }
  return pairs;
}

std::uint16_t status_of(Cause cause) {
  switch (cause) {
    case Cause::None:
      return 200;
    case Cause::FunctionFailed:
    case Cause::LoadFailed:
      return 500;
    case Cause::TimedOut:
      return 504;
    case Cause::WorkerLost:
    case Cause::Orphaned:
      return 502;
    case Cause::UnknownFunction:
      return 404;
    case Cause::Overloaded:
      return 429;
    case Cause::TooLarge:
      return 413;
    case Cause::Cancelled:
    case Cause::NoWorker:
    case Cause::JobHostFailed:
    case Cause::Stopping:
      return 503;
  }
  return 500;
}

std::string_view sentence_of(Cause cause) {
  switch (status_of(cause)) {
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

std::string output_of(const Function& function) {
  for (const Binding& each : function.bindings) {
    if (in_lower_case(each.type) == "http" && each.direction != "in") return each.name;
  }
  return "$return";
}

}  // namespace

// A request, read as far as choosing a function needs.
struct HttpFront::Asked {
  HttpRequest request;
  std::vector<std::string> segments;
  TextPairs headers;
  TextPairs query;
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
RouteTable::Found HttpFront::find(const Asked& asked) const {
  const std::string& method = asked.request.method;
  if (const auto site = sites_.find(asked.host.substr(0, asked.host.find_first_of(".:")));
      site != sites_.end()) {
    return site->second.routes.find(asked.segments, method);
  }
  if (!asked.segments.empty()) {
    if (const auto site = sites_.find(in_lower_case(asked.segments.front())); site != sites_.end()) {
      auto found = site->second.routes.find({asked.segments.begin() + 1, asked.segments.end()}, method);
      if (found.target || !found.allowed.empty()) return found;
    }
  }
  RouteTable::Found only;
  for (const auto& [name, site] : sites_) {
    RouteTable::Found found = site.routes.find(asked.segments, method);
    if (!found.target && found.allowed.empty()) continue;
    // Two applications know it: guessing would send somebody's request to somebody else.
    if (only.target && found.target) return {};
    if (!only.target) only = std::move(found);
  }
  return only;
}

bool HttpFront::is_allowed(const Target& target, const Asked& asked) const {
  if (target.is_anonymous) return true;
  if (!options_.key) return options_.is_private;
  const std::string_view shown = value_of(asked.headers, "x-functions-key").empty()
                                     ? value_of(asked.query, "code")
                                     : value_of(asked.headers, "x-functions-key");
  const Digest digest = sha256(shown);
  return constant_time_equal(view_of(*options_.key), view_of(digest));
}

void HttpFront::handle(HttpRequest request, HttpAnswer plain_answer) {
  if (is_stale_) refresh();
  HttpAnswer answer = [this, plain = std::move(plain_answer)](HttpResponse response) {
    host_.http_answered(response.status);
    plain(std::move(response));
  };
  Asked asked{.request = std::move(request), .segments = {}, .headers = {}, .query = {}, .host = {}};
  std::string_view target = asked.request.target;
  const std::size_t mark = std::min(target.find('?'), target.size());
  auto segments = path_segments(target.substr(0, mark));
  if (!segments || !target.starts_with('/')) {
    return answer(
        problem(400, "E.HTTP.SYNTAX", "the path has a wrong escape, or does not begin with a slash"));
  }
  asked.segments = *std::move(segments);
  asked.query = query_pairs(target.substr(std::min(mark + 1, target.size())));
  asked.headers = header_pairs(asked.request.headers);
  asked.host = in_lower_case(value_of(asked.headers, "host"));
  RouteTable::Found found = find(asked);
  if (sites_.empty()) {
    // Nobody can say yet what is served here: agents are on their way to a runtime that was just started.
    return answer(
        problem(503, "E.HTTP.NO_APPLICATION", "no application is served here yet; try again later"));
  }
  if (!found.target && found.allowed.empty()) {
    return answer(problem(404, "E.HTTP.NOT_FOUND", "no function is served at this path"));
  }
  if (!found.target) {
    HttpResponse response = problem(405, "E.HTTP.METHOD", "the function at this path takes other methods");
    std::string allow;
    for (const std::string& each : found.allowed) allow += (allow.empty() ? "" : ", ") + each;
    response.headers.emplace_back("Allow", allow);
    return answer(std::move(response));
  }
  const Target chosen = targets_[*found.target];  // routes may change before the answer
  if (!is_allowed(chosen, asked)) {
    return answer(problem(401, "E.AUTH.UNAUTHENTICATED",
                          options_.key
                              ? "the function wants its key, in x-functions-key or ?code="
                              : "the function is not anonymous and no key is set here; set http.key_file"));
  }
  invoke(chosen, std::move(found.params), asked, answer);
}

void HttpFront::invoke(const Target& target, RouteParams params, Asked& asked, const HttpAnswer& answer) {
  HttpInput input;
  input.binding = target.trigger;
  input.method = asked.request.method;
  const std::string_view forwarded = value_of(asked.headers, "x-forwarded-proto");
  input.url = (forwarded.empty() ? options_.scheme : std::string{forwarded}) + "://" +
              (asked.host.empty() ? "localhost" : asked.host) + asked.request.target;
  input.trace =
      continue_trace(value_of(asked.headers, "traceparent"), value_of(asked.headers, "tracestate"), random_);
  input.content_type = in_lower_case(asked.request.content_type);
  input.headers = std::move(asked.headers);
  // The key is for the door, not for the function.
  std::erase_if(input.headers, [](const auto& each) { return each.first == "x-functions-key"; });
  input.query = std::move(asked.query);
  input.params = std::move(params);
  input.body = std::move(asked.request.body);
  static const TextMap kNone;
  const TextMap* const capabilities = host_.http_capabilities(target.job_host);
  HttpFrontHost::Call call{target.job_host, target.function->name,
                           std::make_shared<const std::string>(write_http_invocation_body(
                               input, capabilities == nullptr ? kNone : *capabilities)),
                           input.trace};
  const auto taken =
      host_.http_invoke(std::move(call), [this, answer, output = target.output](const Outcome& outcome) {
        answer(response_of(outcome, output));
      });
  if (taken) return;
  const bool is_full =
      taken.error().code == ErrorCode::LimitCapacity || taken.error().code == ErrorCode::LimitRate;
  answer(problem(is_full ? 429 : 503, to_string(taken.error().code), taken.error().reason));
}

HttpResponse HttpFront::response_of(const Outcome& outcome, const std::string& output_binding) const {
  if (outcome.settlement != Settlement::Complete) {
    std::string detail{sentence_of(outcome.cause)};
    if (options_.shows_errors && !outcome.reason.empty()) detail += ": " + outcome.reason;
    return problem(status_of(outcome.cause), "E.INVOCATION." + std::string{to_string(outcome.cause)}, detail);
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
