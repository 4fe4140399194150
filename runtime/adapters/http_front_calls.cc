// Requests that found their function: as invocations, whole or streamed, and their answers.
#include <algorithm>
#include <utility>

#include "protocol/base/http_limits.h"
#include "runtime/adapters/http_front.h"
#include "runtime/adapters/http_problem.h"
#include "runtime/adapters/trace_context.h"

namespace windlass::runtime {
namespace {

std::string_view value_of(const TextPairs& pairs, std::string_view name) {
  const auto found = std::ranges::find(pairs, name, &std::pair<std::string, std::string>::first);
  return found == pairs.end() ? std::string_view{} : std::string_view{found->second};
}

// Of a request whose body flows beside the invocation the worker reads all else from there, too.
constexpr std::string_view kForwardedHost = "x-forwarded-host";
constexpr std::string_view kForwardedProto = "x-forwarded-proto";

// As the agent writes it, less the few lines that it adds.
std::size_t bytes_of(const function_rpc::HttpStreamHead& head) {
  std::size_t bytes = head.method.size() + head.target.size();
  for (const auto& [name, value] : head.headers) bytes += name.size() + value.size() + 4;
  return bytes;
}

}  // namespace

HttpInput HttpFront::input_of(const Chosen& chosen, const HttpRequest& request) {
  HttpInput input;
  input.binding = chosen.target.trigger;
  input.method = request.method;
  input.headers = joined_headers(request.headers);
  input.headers_as_sent = joined_headers_as_sent(request.headers);
  const std::string_view forwarded = forwarded_scheme(request.headers);
  input.url = std::string{forwarded.empty() ? options_.scheme : forwarded}
                  .append("://")
                  .append(chosen.host.empty() ? "localhost" : chosen.host)
                  .append(chosen.path);
  if (!chosen.query.text.empty()) input.url += '?' + chosen.query.text;
  input.trace =
      continue_trace(value_of(input.headers, "traceparent"), value_of(input.headers, "tracestate"), random_);
  input.content_type = in_lower_case(request.content_type);
  input.query = chosen.query.pairs;
  input.params = chosen.params;
  return input;
}

std::string HttpFront::body_of(const Chosen& chosen, const HttpInput& input) {
  static const TextMap kNone;
  const TextMap* const capabilities = host_.http_capabilities(chosen.target.job_host);
  return write_http_invocation_body(input, capabilities == nullptr ? kNone : *capabilities);
}

void HttpFront::invoke(const Chosen& chosen, HttpRequest request, const HttpAnswer& answer) {
  const Target& target = chosen.target;
  if (!http_place(target.job_host).empty()) {
    return answer(http_problem(502, to_string(ErrorCode::ProtoState),
                               "the function's worker streams HTTP, which needs an agent beside it"));
  }
  HttpInput input = input_of(chosen, request);
  input.body = std::move(request.body);
  HttpFrontHost::Call call{target.job_host, target.function->name,
                           std::make_shared<const std::string>(body_of(chosen, input)), input.trace};
  const auto taken = host_.http_invoke(
      std::move(call), [this, answer, output = target.output, id = request.id](const Outcome& outcome) {
        under_way_.erase(id);
        answer(response_of(outcome, output));
      });
  if (!taken) return answer(http_refusal(taken.error()));
  under_way_.emplace(request.id, *taken);
}

std::string HttpFront::http_place(const JobHostKey& key) const {
  const TextMap* const capabilities = host_.http_capabilities(key);
  if (capabilities == nullptr) return {};
  const auto found = capabilities->find(function_rpc::kHttpUriCapability);
  return found == capabilities->end() ? std::string{} : found->second;
}

function_rpc::HttpStreamHead HttpFront::head_of(const Chosen& chosen, const HttpRequest& request,
                                                const HttpInput& input) const {
  function_rpc::HttpStreamHead head{.method = request.method, .target = chosen.path};
  if (!chosen.query.text.empty()) head.target += '?' + chosen.query.text;
  for (const auto& each : input.headers) {
    const bool is_ours =
        each.first == kForwardedHost || each.first == kForwardedProto || each.first == "x-ms-invocation-id";
    if (!is_ours) head.headers.push_back(each);
  }
  head.headers.emplace_back(kForwardedHost, chosen.host.empty() ? "localhost" : chosen.host);
  head.headers.emplace_back(kForwardedProto, input.url.substr(0, input.url.find(':')));
  head.has_body = request.has_body;
  if (request.has_body && request.body_bytes > 0) head.body_bytes = request.body_bytes;
  return head;
}

std::shared_ptr<HttpExchangeEvents> HttpFront::stream(const HttpRequest& request,
                                                      const std::shared_ptr<HttpExchange>& exchange) {
  if (is_stale_) refresh();
  // Mostly nobody streams, and then a request is looked at once.
  const auto streams = [this](const JobHostKey& key) {
    return http_place(key) == function_rpc::kHttpOnChannel;
  };
  if (std::ranges::none_of(job_hosts_, streams)) return nullptr;
  auto found = choose(request);
  const auto* const chosen = std::get_if<Chosen>(&found);
  // What is refused is refused as ever.
  if (chosen == nullptr || !streams(chosen->target.job_host)) return nullptr;
  const HttpInput input = input_of(*chosen, request);
  function_rpc::HttpStreamHead head = head_of(*chosen, request, input);
  if (bytes_of(head) > limits::kHttpStreamHeadBytesMax) {
    host_.http_answered(431);
    exchange->answer(http_problem(431, "E.HTTP.HEAD",
                                  "the head of a request to a function that streams is larger than " +
                                      std::to_string(limits::kHttpStreamHeadBytesMax) + " bytes"));
    return nullptr;
  }
  const TextPairs cors = options_.origins.headers(header_of(request.headers, "origin"));
  const auto explain = [this, cors, output = chosen->target.output](const Outcome& outcome) {
    HttpResponse response = response_of(outcome, output);
    response.headers.insert(response.headers.end(), cors.begin(), cors.end());
    return response;
  };
  auto call = std::make_shared<StreamedCall>(
      host_,
      StreamedCall::Request{.head = std::move(head),
                            .exchange = exchange,
                            .headers = cors,
                            .explain = explain,
                            .answered = [this](std::uint16_t status) { host_.http_answered(status); }});
  const auto taken =
      host_.http_invoke({chosen->target.job_host, chosen->target.function->name,
                         std::make_shared<const std::string>(body_of(*chosen, input)), input.trace, call},
                        [call](const Outcome& outcome) { call->handle_outcome(outcome); });
  if (!taken) {
    HttpResponse refusal = http_refusal(taken.error());
    host_.http_answered(refusal.status);
    exchange->answer(std::move(refusal));
    return nullptr;
  }
  call->handle_taken(*taken);
  return call;
}

HttpResponse HttpFront::response_of(const Outcome& outcome, const std::string& output_binding) const {
  if (outcome.settlement != Settlement::Complete) {
    return http_failure(outcome, options_.shows_errors);
  }
  Result<HttpOutput> output = read_http_output(outcome.body, output_binding);
  if (!output) {
    return http_problem(
        502, to_string(output.error().code),
        options_.shows_errors ? output.error().reason : "the function's answer is no HTTP answer");
  }
  return {.status = output->status,
          .content_type = std::move(output->content_type),
          .body = std::move(output->body),
          .headers = std::move(output->headers),
          .may_be_cached = true};
}

}  // namespace windlass::runtime
