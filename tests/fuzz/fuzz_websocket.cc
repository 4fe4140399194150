// Bytes from an unknown peer, fed to the frame reader in pieces.
#include <cstddef>
#include <cstdint>
#include <string>

#include "protocol/base/random.h"
#include "protocol/websocket/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace windlass;
  if (size < 1) return 0;
  Random random{data[0]};
  websocket::FrameReader reader{(data[0] & 1) != 0 ? websocket::Side::Server : websocket::Side::Client};
  std::string bytes{reinterpret_cast<const char*>(data) + 1, size - 1};
  std::span<char> left{bytes};
  while (!left.empty()) {
    const std::size_t piece = std::min<std::size_t>(left.size(), 1 + random.below(left.size()));
    reader.handle_bytes(left.first(piece));
    left = left.subspan(piece);
    for (;;) {
      auto event = reader.poll_event();
      if (!event) return 0;
      if (!*event) break;
    }
  }
  return 0;
}
