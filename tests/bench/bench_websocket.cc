// What one 512-byte frame costs to read and to write.
#include <string>

#include "protocol/base/check.h"
#include "protocol/websocket/reader.h"
#include "protocol/websocket/writer.h"
#include "tests/bench/bar.h"

namespace windlass {
namespace {

using namespace websocket;

constexpr std::size_t kPayloadBytes = 512;

// Unmasking changes the input in place. Masking with a key of zero leaves the bytes as they are while the
// work stays the same, so one buffer serves every call.
struct ReadOne {
  explicit ReadOne(BytesView payload) { append_text(payload, MaskKey{}, frame); }
  void operator()() {
    reader.handle_bytes(frame);
    auto event = reader.poll_event();
    CHECK(event.has_value() && event->has_value());
    const auto& message = *std::get_if<Message>(&**event);
    bench::keep(message.payload.data());
    bench::keep(message.payload.size());
  }
  Bytes frame;
  FrameReader reader{Side::Server};
};

struct WriteOne {
  void operator()() {
    out.clear();
    append_text(payload, mask, out);
    bench::keep(out.data());
  }
  Bytes payload;
  Mask mask;
  Bytes out;
};

}  // namespace
}  // namespace windlass

int main(int argc, char** argv) {
  using namespace windlass;
  bench::Run run{argc, argv};
  const Bytes ascii(kPayloadBytes, 'a');
  Bytes mixed;
  while (mixed.size() + 12 <= kPayloadBytes)
    mixed +=
        "Gr\xC3\xBC\xC3\x9F"
        "e \xE2\x82\xAC ";
  run.measure(
      bench::Case{"websocket_read_ascii", ReadOne{ascii}},
      bench::Case{"websocket_read_non_ascii", ReadOne{mixed}},
      bench::Case{"websocket_write_server", WriteOne{ascii, std::nullopt, {}}},
      bench::Case{"websocket_write_client", WriteOne{ascii, websocket::MaskKey::from(0x12345678), {}}});
  return run.exit_code();
}
