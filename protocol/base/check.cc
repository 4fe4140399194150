#include "protocol/base/check.h"

#include <cstdio>
#include <cstdlib>

#include "protocol/base/mutant.h"

namespace windlass {

#ifdef WINDLASS_MUTANTS
std::string_view active_mutant;
#endif

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace windlass
