#include "conformance/runner/hook_output.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "protocol/base/check.h"

namespace windlass::conformance {

HookOutput::HookOutput() : file_(::memfd_create("hook", MFD_CLOEXEC)) {
  CHECK(file_ >= 0);
}

HookOutput::~HookOutput() {
  ::close(file_);
}

std::string HookOutput::path() const {
  return "/proc/self/fd/" + std::to_string(file_);
}

std::string HookOutput::last_line() const {
  const off_t size = ::lseek(file_, 0, SEEK_END);
  std::array<char, 512> tail{};
  const off_t from = size > static_cast<off_t>(tail.size()) ? size - static_cast<off_t>(tail.size()) : 0;
  const ssize_t got = ::pread(file_, tail.data(), tail.size(), from);
  std::string_view text{tail.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
  while (text.ends_with('\n')) text.remove_suffix(1);
  if (text.empty()) return {};
  return ": " + std::string{text.substr(text.rfind('\n') + 1)};
}

}  // namespace windlass::conformance
