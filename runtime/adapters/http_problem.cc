#include "runtime/adapters/http_problem.h"

#include <string>

namespace windlass::runtime {
namespace {

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
    case Cause::CallerLeft:
      return {504, "E.INVOCATION.CALLER_LEFT"};
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

}  // namespace

HttpResponse http_problem(std::uint16_t status, std::string_view code, std::string_view detail) {
  HttpResponse response = to_response({status, std::string{code}, std::string{detail}});
  if (status == 429 || status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

HttpResponse http_refusal(const Error& error) {
  const bool is_full = error.code == ErrorCode::LimitCapacity || error.code == ErrorCode::LimitRate;
  return http_problem(is_full ? 429 : 503, to_string(error.code), error.reason);
}

HttpResponse http_failure(const Outcome& outcome, bool shows_reason) {
  std::string detail{sentence_of(outcome.cause)};
  if (shows_reason && !outcome.reason.empty()) detail += ": " + outcome.reason;
  const Answer answer = answer_of(outcome.cause);
  return http_problem(answer.status, answer.code, detail);
}

}  // namespace windlass::runtime
