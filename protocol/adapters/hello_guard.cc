#include "protocol/adapters/hello_guard.h"

#include "protocol/base/limits.h"

namespace windlass {
namespace {

constexpr unsigned char kHandshakeRecord = 22;
constexpr std::size_t kMessageHeadBytes = 4;

}  // namespace

bool HelloGuard::handle_bytes(std::span<const char> sealed) {
  for (const char byte : sealed) {
    if (is_done()) break;
    head_[size_++] = static_cast<unsigned char>(byte);
  }
  if (!is_done() || head_[0] != kHandshakeRecord) return true;
  const std::size_t record_bytes = head_[3] * std::size_t{256} + head_[4];
  // Nobody cuts a record so short that it does not say how long the message is, but to hide that.
  if (record_bytes < kMessageHeadBytes) return false;
  return (head_[6] * std::size_t{256} + head_[7]) * 256 + head_[8] <= limits::kHelloBytesMax;
}

}  // namespace windlass
