// Decoding against the parser alone and against a general validator; encoding against decoding.
#include <simdjson.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "protocol/base/check.h"
#include "protocol/codec/decode.h"
#include "protocol/codec/encode.h"
#include "tests/bench/bar.h"
#include "tests/support/allocations.h"
#include "tests/support/schema_oracle.h"

namespace windlass {
namespace {

// 400 bytes, as a worker sends it every interval.
const std::string kHeartbeat =
    R"({"type":"control.heartbeat","id":"01J9ZQ4X7M8N2P3R5T6V8W9YAB","ts":"2026-11-16T08:00:00.123Z",)"
    R"("tenant":"acme-production","sender":{"role":"worker","id":"7f0c9a52-3f1e-4a57-9a1e-0c4d2f6b8e11"},)"
    R"("ack":{"request":true},"payload":{"healthy":true,"metrics":{"inflight":12,"cpu_pct":37.25,"mem_pct":61.5,)"
    R"("disk_pct":40.125,"latency_ms":3.75,"queue_depth":118,"pool":"warm_start"},)"
    R"("packages":{"drift":false}}})";

// A command of 512 bytes, its payload opaque.
std::string business_frame() {
  std::string text =
      R"({"type":"biz.command.run","id":"01J9ZQ4X7M8N2P3R5T6V8W9YAB","ts":"2026-11-16T08:00:00.123Z",)"
      R"("tenant":"acme-production","sender":{"role":"scheduler","id":"scheduler-1"},"corr":"01J9ZQ4X7M8N2P3R5T6V8W9YAA",)"
      R"("seq":123456,"payload":{"node":"transform","attempt":1,"args":{"input":"s3://bucket/key/0001","rows":5000,)"
      R"("columns":["id","name","created_at"]},"note":")";
  text.append(512 - text.size() - 3, 'n');
  return text + "\"}}";
}

struct Parse {
  explicit Parse(const std::string& text) : padded(text) {}
  void operator()() {
    const auto parsed = parser.parse(padded);
    CHECK(parsed.error() == simdjson::SUCCESS);
    bench::keep(&parser.doc);
  }
  simdjson::dom::parser parser;
  simdjson::padded_string padded;
};

struct Decode {
  void operator()() {
    const Frame* frame = decoder.decode(text, MessageKind::Text, Expect::RevisionTwo);
    CHECK(frame != nullptr);
    bench::keep(frame);
  }
  Decoder& decoder;
  const std::string& text;
};

struct Encode {
  void operator()() {
    out.clear();
    encode(frame, Revision::Two, out);
    bench::keep(out.data());
  }
  const Frame& frame;
  std::string out;
};

struct Validate {
  void operator()() { CHECK(oracle.validate()); }
  support::SchemaOracle& oracle;
};

double allocations_per_frame(Decode decode, Encode encode_one) {
  constexpr int kFrames = 1000;
  decode();
  encode_one();
  const std::uint64_t before = support::allocation_count();
  for (int i = 0; i < kFrames; ++i) {
    decode();
    encode_one();
  }
  return static_cast<double>(support::allocation_count() - before) / kFrames;
}

}  // namespace
}  // namespace windlass

int main(int argc, char** argv) {
  using namespace windlass;
  bench::Run run{argc, argv};
  CHECK(kHeartbeat.size() == 400);
  const std::string business = business_frame();
  CHECK(business.size() == 512);

  Decoder decoder;
  Decoder kept;  // holds the frame that is encoded
  const Frame* beat = kept.decode(kHeartbeat, MessageKind::Text, Expect::RevisionTwo);
  CHECK(beat != nullptr);
  // Without its patterns: std::regex alone would make the comparison meaningless.
  support::SchemaOracle oracle{support::SchemaOracle::Patterns::Skip};
  CHECK(oracle.parse(kHeartbeat));
  Parse parse{kHeartbeat};

  const auto [parsed, decoded, encoded, validated] = run.measure(
      bench::Case{"codec_simdjson_parse", [&] { parse(); }},
      bench::Case{"codec_decode", Decode{decoder, kHeartbeat}},
      bench::Case{"codec_encode", Encode{*beat, {}}}, bench::Case{"codec_valijson", Validate{oracle}});
  run.bar("codec_decode_vs_simdjson_parse", decoded.ratio_to(parsed), "<=", 2.5);
  run.bar("codec_valijson_vs_decode", validated.ratio_to(decoded), ">=", 10);
  run.bar("codec_encode_vs_decode", encoded.ratio_to(decoded), "<=", 0.7);
  run.bar("codec_allocations_per_frame", allocations_per_frame({decoder, kHeartbeat}, {*beat, {}}), "<=", 0);

  Decoder kept_business;
  const Frame* command = kept_business.decode(business, MessageKind::Text, Expect::RevisionTwo);
  CHECK(command != nullptr);
  run.measure(bench::Case{"codec_decode_biz_512", Decode{decoder, business}},
              bench::Case{"codec_encode_biz_512", Encode{*command, {}}});
  return run.exit_code();
}
