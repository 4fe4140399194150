#include "protocol/shell/descriptors.h"

#include <sys/resource.h>

#include "protocol/base/check.h"

namespace windlass {

std::uint64_t raise_descriptor_limit() {
  rlimit limit{};
  CHECK(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : before;
}

}  // namespace windlass
