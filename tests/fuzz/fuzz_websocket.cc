// Bytes from an unknown peer to our frame reader and to Boost.Beast: they must agree. The first byte of an
// input chooses our side (even: server, odd: client) and how the reader's input is cut; the rest is the
// stream.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/support/websocket_differential.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace windlass;
  if (size == 0) return 0;
  const auto side = (data[0] & 1U) == 0 ? websocket::Side::Server : websocket::Side::Client;
  const std::string_view stream{reinterpret_cast<const char*>(data) + 1, size - 1};
  if (const auto different = support::disagreement(side, stream, data[0])) {
    std::fprintf(stderr, "disagreement: %s\n", different->c_str());
    std::abort();
  }
  return 0;
}
