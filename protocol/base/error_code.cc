#include "protocol/base/error_code.h"

#include <array>
#include <cstddef>

namespace windlass {
namespace {

constexpr std::array kTexts = {
#define WINDLASS_TEXT(name, text) std::string_view{text},
    WINDLASS_ERROR_CODES(WINDLASS_TEXT)
#undef WINDLASS_TEXT
};

}  // namespace

std::string_view to_string(ErrorCode code) {
  return kTexts[static_cast<std::size_t>(code)];
}

std::optional<ErrorCode> error_code_from(std::string_view text) {
  for (std::size_t i = 0; i < kTexts.size(); ++i) {
    if (kTexts[i] == text) return static_cast<ErrorCode>(i);
  }
  return std::nullopt;
}

}  // namespace windlass
