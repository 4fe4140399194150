// Bytes to operations on a pair of sessions (tests/support/session_operations.h); a broken promise is a
// crash. WINDLASS_TRACE=1 fuzz_session FILE prints what happened on the way there.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "tests/support/session_operations.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace windlass::testing;
  constexpr std::size_t kOperationsMax = 500;
  Choices choices{std::span{data, size}};
  const OperationsReport report =
      run_session_operations(choices, kOperationsMax, std::getenv("WINDLASS_TRACE") != nullptr);
  if (report.failure.empty()) return 0;
  std::fprintf(stderr, "broken promise: %s\n", report.failure.c_str());
  std::abort();
}
