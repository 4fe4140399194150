#include "runtime/adapters/trace_context.h"

#include <algorithm>

namespace windlass::runtime {
namespace {

constexpr std::size_t kParentBytes = 55;  // 00-<32>-<16>-<2>
constexpr std::size_t kStateBytesMax = 512;

bool is_lower_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// The lowest digits of the value.
void append_hex(std::string& to, std::uint64_t value, std::size_t digits) {
  while (digits > 0) to += "0123456789abcdef"[(value >> (4 * --digits)) & 0xFU];
}

std::string hex(std::uint64_t value) {
  std::string text;
  append_hex(text, value, 16);
  return text;
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
  const std::uint64_t high = (random.next() & ~0xF000ULL) | 0x4000U;
  const std::uint64_t low = (random.next() & ~(0x3ULL << 62U)) | (1ULL << 63U);
  std::string guid;
  guid.reserve(36);
  append_hex(guid, high >> 32U, 8);
  append_hex(guid += '-', high >> 16U, 4);
  append_hex(guid += '-', high, 4);
  append_hex(guid += '-', low >> 48U, 4);
  append_hex(guid += '-', low, 12);
  return guid;
}

}  // namespace windlass::runtime
