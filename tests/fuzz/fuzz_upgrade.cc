// HTTP heads from an unknown peer to both upgrade readers: nothing may crash, and the answer must not depend
// on how the bytes are cut. The first byte chooses the side (even: server, odd: client) and the cuts.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/base/check.h"
#include "protocol/base/random.h"
#include "protocol/websocket/upgrade.h"

namespace {

using namespace windlass;

const websocket::UpgradeRules kRules{.paths = {"/session"}, .origins_allowed = {"https://console.example"}};

// What a reader says, as text: its answer and how many bytes it left.
std::string answer(const Result<std::optional<websocket::UpgradeRequest>>& result) {
  if (!result) return result.error().reason;
  if (!*result) return "more";
  const auto& request = **result;
  return request.target + ' ' + request.host + ' ' + request.key + ' ' + request.origin.value_or("-") + ' ' +
         request.authorization.value_or("-");
}

std::string answer(const Result<std::optional<websocket::UpgradeReply>>& result) {
  if (!result) return result.error().reason;
  if (!*result) return "more";
  return std::to_string((*result)->status) + ' ' +
         std::to_string((*result)->retry_after.value_or(Duration{-1}).count());
}

template <class Reader>
std::string read(Reader reader, std::vector<char> bytes, std::size_t piece_max, Random random) {
  std::span<char> left{bytes};
  for (;;) {
    const std::size_t size = std::min<std::size_t>(left.size(), 1 + random.below(piece_max));
    std::span<char> piece = left.first(size);
    const auto result = reader.handle_bytes(piece);
    left = left.subspan(size - piece.size());
    if (!result) return answer(result);
    if (*result || left.empty()) return answer(result) + ", left " + std::to_string(left.size());
  }
}

template <class Reader>
void compare(const Reader& reader, const std::vector<char>& bytes, std::uint64_t seed) {
  const std::string whole = read(reader, bytes, SIZE_MAX / 2, Random{seed});
  CHECK(read(reader, bytes, 16, Random{seed}) == whole);
  CHECK(read(reader, bytes, 1, Random{seed}) == whole);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::vector<char> bytes(data + 1, data + size);
  if ((data[0] & 1U) == 0) {
    compare(websocket::UpgradeRequestReader{kRules}, bytes, data[0]);
  } else {
    compare(websocket::UpgradeResponseReader{{'t', 'h', 'e', ' ', 's', 'a', 'm', 'p', 'l', 'e', ' ', 'n', 'o',
                                              'n', 'c', 'e'}},
            bytes, data[0]);
  }
  return 0;
}
