// What one 512-byte frame costs to read and to write, beside what decoding the message in it costs.
#include <string>

#include "protocol/base/check.h"
#include "protocol/codec/decode.h"
#include "protocol/websocket/reader.h"
#include "protocol/websocket/writer.h"
#include "tests/bench/bar.h"

namespace windlass {
namespace {

using namespace websocket;

constexpr std::size_t kPayloadBytes = 512;

// A message of kPayloadBytes; `filler` is repeated in its payload.
Bytes message_of(const Bytes& filler) {
  Bytes text =
      R"({"type":"biz.order.created","id":"01HZX3V7Q8R9S0T1U2V3W4X5Y6","ts":"2025-01-02T03:04:05.678Z",)"
      R"("tenant":"acme","sender":{"role":"worker","id":"worker-17"},"seq":421337,)"
      R"("payload":{"order":4711,"lines":[{"sku":"A-1","count":2},{"sku":"B-7","count":1}],"note":")";
  const Bytes end = R"("}})";
  while (text.size() + filler.size() + end.size() <= kPayloadBytes) text += filler;
  text.append(kPayloadBytes - end.size() - text.size(), '.');
  return text + end;
}

// Unmasking changes the input in place. A key of zero leaves the bytes as they are while the work stays the
// same, so one buffer serves every call.
struct ReadOne {
  explicit ReadOne(BytesView payload) { append_text(payload, MaskKey{}, frame); }
  void operator()() {
    reader.handle_bytes(frame);
    const auto event = reader.poll_event();
    CHECK(event.has_value() && event->has_value());
    const auto* message = std::get_if<Message>(&**event);
    CHECK(message != nullptr);
    bench::keep(message->payload.data());
    bench::keep(message->payload.size());
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
  const Bytes text = message_of("plain words ");
  const Bytes mixed = message_of(
      "Gr\xC3\xBC\xC3\x9F"
      "e \xE2\x82\xAC ");
  Decoder decoder;
  const auto decode = [&] {
    const Frame* frame = decoder.decode(text, MessageKind::Text, Expect::RevisionTwo);
    CHECK(frame != nullptr);
    bench::keep(frame);
  };
  const auto timings = run.measure(
      bench::Case{"decode", decode}, bench::Case{"websocket_read", ReadOne{text}},
      bench::Case{"websocket_read_non_ascii", ReadOne{mixed}},
      bench::Case{"websocket_write_server", WriteOne{text, std::nullopt, {}}},
      bench::Case{"websocket_write_client", WriteOne{text, websocket::MaskKey::from(0x12345678), {}}});
  const auto& [decoded, read, read_non_ascii, write_server, write_client] = timings;
  run.bar("websocket_read_vs_decode", read.ratio_to(decoded), "<=", 0.3);
  run.bar("websocket_write_vs_decode", write_client.ratio_to(decoded), "<=", 0.3);
  return run.exit_code();
}
