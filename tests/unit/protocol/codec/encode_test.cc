// Encoding: exact text, escapes, and the promise that what is encoded decodes to the same frame.
#include "protocol/codec/encode.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <string_view>

#include "protocol/base/limits.h"
#include "protocol/base/random.h"
#include "protocol/codec/decode.h"
#include "tests/support/allocations.h"
#include "tests/support/examples.h"
#include "tests/support/frame_equality.h"
#include "tests/support/random_frame.h"
#include "tests/support/schema_oracle.h"

namespace windlass {
namespace {

using support::expect_of;

Frame ack_frame(const Ack& ack) {
  Frame frame;
  frame.id = "f-1";
  frame.ts = WallTime{milliseconds{0}};
  frame.tenant = "acme";
  frame.sender_id = "w-1";
  frame.body = ack;
  return frame;
}

std::string payload_text(const Frame& frame) {
  std::string out;
  encode(frame, Revision::Two, out);
  const std::size_t at = out.find(R"("payload":)") + 10;
  return out.substr(at, out.size() - at - 1);
}

TEST(Encode, WhatIsEncodedDecodesToTheSameFrame) {
  constexpr std::uint64_t kFrames = 20'000;
  Decoder decoder;
  std::string message;
  for (std::uint64_t seed = 0; seed < kFrames; ++seed) {
    const Revision revision = seed % 2 == 0 ? Revision::Two : Revision::One;
    support::RandomFrame random{seed, revision};
    message.clear();
    const MessageKind kind = encode(random.frame(), revision, message);
    const Frame* decoded = decoder.decode(message, kind, expect_of(revision));
    ASSERT_NE(decoded, nullptr) << "seed " << seed << ": " << decoder.violation().pointer << " "
                                << decoder.violation().reason << "\n"
                                << message;
    ASSERT_EQ(support::difference(random.frame(), *decoded), "") << "seed " << seed << "\n" << message;
  }
}

TEST(Encode, WhatIsEncodedPassesTheSchemaValidator) {
  //= REV-3
  constexpr std::uint64_t kFrames = 2'000;
  support::SchemaOracle oracle;
  for (std::uint64_t seed = 0; seed < kFrames; ++seed) {
    const Revision revision = seed % 2 == 0 ? Revision::Two : Revision::One;
    support::RandomFrame random{seed, revision};
    std::string message;
    const MessageKind kind = encode(random.frame(), revision, message);
    ASSERT_TRUE(oracle.accepts(message, kind, expect_of(revision))) << "seed " << seed << "\n" << message;
  }
}

TEST(Encode, AppendsToItsBuffer) {
  std::string out = "before";
  EXPECT_EQ(encode(ack_frame({}), Revision::Two, out), MessageKind::Text);
  EXPECT_EQ(out, R"(before{"type":"control.ack","id":"f-1","ts":"1970-01-01T00:00:00.000Z","tenant":"acme",)"
                 R"("sender":{"role":"worker","id":"w-1"},"payload":{"ok":true}})");
}

TEST(Encode, EscapesWhatJsonMustEscapeAndNothingElse) {
  for (const std::string_view padding : {"", "12345678", "123456789abc"}) {
    Ack ack;
    const std::string info = std::string{padding} + "\"\\\n\r\t\b\x01\x1f \x7f/é☃" + std::string{padding};
    ack.info = info;
    EXPECT_EQ(payload_text(ack_frame(ack)), R"({"ok":true,"info":")" + std::string{padding} +
                                                R"(\"\\\n\u000d\u0009\u0008\u0001\u001f )" + "\x7f/é☃" +
                                                std::string{padding} + "\"}");
  }
}

TEST(Encode, EveryByteThatNeedsAnEscapeIsFoundAtEveryPlace) {
  Decoder decoder;
  for (unsigned byte = 0; byte < 0x80; ++byte) {
    for (std::size_t at = 0; at < 20; ++at) {
      std::string info(20, 'x');
      info[at] = static_cast<char>(byte);
      Ack ack;
      ack.info = info;
      std::string out;
      encode(ack_frame(ack), Revision::Two, out);
      const Frame* frame = decoder.decode(out, MessageKind::Text, Expect::RevisionTwo);
      ASSERT_NE(frame, nullptr) << byte << " at " << at;
      ASSERT_EQ(std::get<Ack>(frame->body).info, info);
    }
  }
}

TEST(Encode, AnAckBitmapIsHexWithoutLeadingZeros) {
  //= ACK-2
  Ack ack;
  ack.state.emplace();
  ack.state->credit = {256, 1000};
  EXPECT_EQ(payload_text(ack_frame(ack)), R"({"ok":true,"recv_window":256,"recv_window_bytes":1000})");
  ack.state->held.set(0);
  ack.state->held.set(2);
  ack.state->owned_next = 42;
  EXPECT_EQ(payload_text(ack_frame(ack)),
            R"({"ok":true,"ack_seq":41,"ack_bitmap":"5","recv_window":256,"recv_window_bytes":1000})");
  ack.state->held.set(68);
  EXPECT_NE(payload_text(ack_frame(ack)).find(R"("ack_bitmap":"100000000000000005")"), std::string::npos);
  ack.state->held.set(AckBitmap::kBitsMax - 1);
  ack.state->dup = 3;
  const std::string widest = payload_text(ack_frame(ack));
  EXPECT_NE(widest.find(R"("ack_bitmap":"8000)"), std::string::npos);
  EXPECT_NE(widest.find(R"("dup":3)"), std::string::npos);
}

TEST(Encode, EveryBitOfABitmapComesBack) {
  //= ACK-2
  Decoder decoder;
  for (std::size_t bit = 0; bit < AckBitmap::kBitsMax; ++bit) {
    Ack ack;
    ack.state.emplace();
    ack.state->held.set(bit);
    std::string out;
    encode(ack_frame(ack), Revision::Two, out);
    const Frame* frame = decoder.decode(out, MessageKind::Text, Expect::RevisionTwo);
    ASSERT_NE(frame, nullptr);
    ASSERT_EQ(std::get<Ack>(frame->body).state->held, ack.state->held) << bit;
  }
}

TEST(Encode, AFrameWithoutAttachmentIsOneEnvelopeInATextMessage) {
  //= TRN-1
  Frame frame;
  frame.id = "f-1";
  frame.tenant = "acme";
  frame.sender_id = "w-1";
  frame.body = Heartbeat{};
  std::string out;
  EXPECT_EQ(encode(frame, Revision::Two, out), MessageKind::Text);
  Decoder decoder;
  EXPECT_NE(decoder.decode(out, MessageKind::Text, Expect::RevisionTwo), nullptr) << out;
  EXPECT_EQ(decoder.decode(out, MessageKind::Binary, Expect::RevisionTwo), nullptr);
  EXPECT_EQ(decoder.decode(out + out, MessageKind::Text, Expect::RevisionTwo), nullptr);
}

TEST(Encode, AnAttachmentFollowsItsEnvelope) {
  //= ATT-1
  Frame frame = ack_frame({});
  frame.seq = 3;
  frame.body = Data{"biz.x", R"({"a":1})", Attachment{"text/plain", "raw\n"}};
  std::string out;
  EXPECT_EQ(encode(frame, Revision::Two, out), MessageKind::Binary);
  const std::string envelope =
      R"({"type":"biz.x","id":"f-1","ts":"1970-01-01T00:00:00.000Z","seq":3,"tenant":"acme",)"
      R"("sender":{"role":"worker","id":"w-1"},"attachment":{"bytes":4,"type":"text/plain"},"payload":{"a":1}})";
  EXPECT_EQ(out, (std::string{"\0\0\0\xb8", 4} + envelope + "raw\n"));
  EXPECT_EQ(envelope.size(), 0xb8U);
}

TEST(Encode, TimesOutsideFourDigitYearsAreClamped) {
  Decoder decoder;
  for (const WallTime ts : {WallTime::min(), WallTime::max()}) {
    Frame frame = ack_frame({});
    frame.ts = ts;
    std::string out;
    encode(frame, Revision::Two, out);
    EXPECT_NE(decoder.decode(out, MessageKind::Text, Expect::RevisionTwo), nullptr) << out;
  }
}

TEST(Encode, SteadyStateFramesCostNoAllocationEitherWay) {
  Decoder decoder;
  std::string out;
  for (const support::Example& example : support::valid_examples()) {
    if (example.schema.starts_with("register")) continue;  // once per connection; its lists are vectors
    const auto both_ways = [&] {
      const Frame* frame = decoder.decode(example.message, example.kind, expect_of(example.revision));
      ASSERT_NE(frame, nullptr);
      out.clear();
      encode(*frame, example.revision, out);
    };
    both_ways();
    const std::uint64_t before = support::allocation_count();
    for (int i = 0; i < 10; ++i) both_ways();
    EXPECT_EQ(support::allocation_count() - before, 0U) << example.name;
  }
}

}  // namespace
}  // namespace windlass
