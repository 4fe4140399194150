// CHECK is for mistakes only we can make; it is on in production. What a peer or the environment can cause is
// a Result instead (result.h).
#pragma once

namespace windlass {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace windlass

#define CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::windlass::check_failed(#condition, __FILE__, __LINE__))

#ifdef NDEBUG
#define DCHECK(condition) static_cast<void>(sizeof((condition) ? 1 : 0))
#else
#define DCHECK(condition) CHECK(condition)
#endif
