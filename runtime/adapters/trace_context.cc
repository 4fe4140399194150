#include "runtime/adapters/trace_context.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace windlass::runtime {
namespace {

constexpr std::size_t kParentBytes = 55;  // 00-<32>-<16>-<2>
constexpr std::size_t kStateBytesMax = 512;

bool is_lower_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string hex(std::uint64_t value) {
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(value));
  return digits.data();
}

}  // namespace

bool is_trace_parent(std::string_view text) {
  if (text.size() < kParentBytes || text[2] != '-' || text[35] != '-' || text[52] != '-') return false;
  const std::string_view version = text.substr(0, 2);
  if (version == "00" ? text.size() != kParentBytes
                      : text.size() > kParentBytes && text[kParentBytes] != '-') {
    return false;
  }
  const std::string_view trace = text.substr(3, 32);
  const std::string_view span = text.substr(36, 16);
  return version != "ff" && is_lower_hex(version) && is_lower_hex(trace) && is_lower_hex(span) &&
         is_lower_hex(text.substr(53, 2)) && trace.find_first_not_of('0') != std::string_view::npos &&
         span.find_first_not_of('0') != std::string_view::npos;
}

TraceContext continue_trace(std::string_view parent, std::string_view state, Random& random) {
  const std::string span = hex(random.next() | 1U);
  if (!is_trace_parent(parent)) {
    std::string fresh = "00-";
    fresh += hex(random.next());
    fresh += hex(random.next() | 1U);
    return {fresh + '-' + span + "-00"};
  }
  std::string mine = "00-";
  mine.append(parent.substr(3, 32)).append("-").append(span).append("-").append(parent.substr(53, 2));
  return {std::move(mine), std::string{state.size() <= kStateBytesMax ? state : std::string_view{}}};
}

std::string random_guid(Random& random) {
  const std::string high = hex((random.next() & ~0xF000ULL) | 0x4000U);
  const std::string low = hex((random.next() & ~(0x3ULL << 62U)) | (1ULL << 63U));
  std::string guid = high.substr(0, 8);
  guid.append("-").append(high, 8, 4).append("-").append(high, 12, 4);
  guid.append("-").append(low, 0, 4).append("-").append(low, 4, 12);
  return guid;
}

}  // namespace windlass::runtime
