// How callers over HTTP are told what went wrong.
#pragma once

#include <cstdint>
#include <string_view>

#include "protocol/base/result.h"
#include "protocol/http/http_message.h"
#include "runtime/core/runtime_core.h"

namespace windlass::runtime {

// With Retry-After where trying again helps.
HttpResponse http_problem(std::uint16_t status, std::string_view code, std::string_view detail);
HttpResponse http_refusal(const Error& error);                         // of an invocation that did not begin
HttpResponse http_failure(const Outcome& outcome, bool shows_reason);  // of one that did not complete

}  // namespace windlass::runtime
