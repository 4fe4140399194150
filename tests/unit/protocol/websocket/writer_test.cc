#include "protocol/websocket/writer.h"

#include <gtest/gtest.h>

#include <string>

#include "protocol/base/utf8.h"
#include "tests/support/allocations.h"
#include "tests/support/websocket_outcome.h"

namespace windlass::websocket {
namespace {

using namespace support;
using namespace std::string_literals;

TEST(Writer, WritesTheExamplesOfTheRfc) {  // RFC 6455, 5.7
  const MaskKey key = MaskKey::from(0x37FA213D);
  Bytes out;
  append_text("Hello", std::nullopt, out);
  EXPECT_EQ(out, "\x81\x05Hello");
  out.clear();
  append_text("Hello", key, out);
  EXPECT_EQ(out, "\x81\x85\x37\xFA\x21\x3D\x7F\x9F\x4D\x51\x58");
  out.clear();
  append_frame({.opcode = Opcode::Text, .final = false}, "Hel", out);
  append_frame({.opcode = Opcode::Continuation}, "lo", out);
  EXPECT_EQ(out, "\x01\x03Hel\x80\x02lo");
  out.clear();
  append_ping("Hello", std::nullopt, out);
  append_pong("Hello", key, out);
  EXPECT_EQ(out, "\x89\x05Hello\x8A\x85\x37\xFA\x21\x3D\x7F\x9F\x4D\x51\x58");
  out.clear();
  append_binary(Bytes(256, 'b'), std::nullopt, out);
  EXPECT_EQ(out.substr(0, 4), "\x82\x7E\x01\x00"s);
  out.clear();
  append_binary(Bytes(65536, 'b'), std::nullopt, out);
  EXPECT_EQ(out.substr(0, 10), "\x82\x7F\x00\x00\x00\x00\x00\x01\x00\x00"s);
}

TEST(Writer, PicksTheShortestLengthAtEveryBorder) {
  for (const auto& [size, header] :
       {std::pair{0U, 2U}, {125U, 2U}, {126U, 4U}, {65535U, 4U}, {65536U, 10U}}) {
    Bytes out;
    append_binary(Bytes(size, 'b'), std::nullopt, out);
    EXPECT_EQ(out.size(), size + header);
    const auto limits = ReaderLimits{.message_bytes_max = 100'000};
    EXPECT_EQ(read_all(Side::Client, out, limits).events.size(), 1U);
  }
}

TEST(Writer, AppendsAfterWhatTheBufferHolds) {
  Bytes out = "before";
  append_text("x", MaskKey::from(1), out);
  EXPECT_EQ(out.substr(0, 6), "before");
  EXPECT_EQ(read_all(Side::Server, BytesView{out}.substr(6)), (Outcome{{{Seen::Kind::Text, "x"}}, {}, ""}));
}

TEST(Writer, AllocatesNothingIntoAReusedBuffer) {
  const Bytes payload(512, 'a');
  Bytes out;
  out.reserve(1024);
  const auto before = support::allocation_count();
  for (std::uint32_t i = 0; i < 100; ++i) {
    out.clear();
    append_text(payload, MaskKey::from(i), out);
    append_close(CloseCode::Normal, "bye", std::nullopt, out);
  }
  EXPECT_EQ(support::allocation_count(), before);
}

TEST(Writer, CutsALongCloseReasonBetweenCharacters) {
  for (std::size_t lead = 0; lead < 4; ++lead) {
    Bytes reason(lead, 'r');
    while (reason.size() < 200) reason += "\xE2\x82\xAC";
    Bytes out;
    append_close(CloseCode::PolicyViolation, reason, std::nullopt, out);
    const Outcome outcome = read_all(Side::Client, out);
    ASSERT_EQ(outcome.events.size(), 1U);
    EXPECT_EQ(outcome.events[0].close_code, 1008);
    EXPECT_TRUE(is_utf8(outcome.events[0].payload));
    EXPECT_GT(outcome.events[0].payload.size(), limits::kCloseReasonBytesMax - 3);
    EXPECT_EQ(reason.substr(0, outcome.events[0].payload.size()), outcome.events[0].payload);
  }
}

TEST(Writer, WritesWhatTheRfcForbidsWhenAsked) {
  Bytes out;
  append_frame({.opcode = static_cast<Opcode>(0xB), .final = false, .reserved_bits = 5}, "", out);
  EXPECT_EQ(out, "\x5B\x00"s);
  out.clear();
  append_frame({.length_form = LengthForm::Bits64}, "ab", out);
  EXPECT_EQ(out, "\x82\x7F\x00\x00\x00\x00\x00\x00\x00\x02"s + "ab");
  out.clear();
  append_frame({.length = 200, .length_form = LengthForm::Bits7}, "ab", out);
  EXPECT_EQ(out, "\x82\x48"s + "ab");
  out.clear();
  append_frame({.opcode = Opcode::Ping, .length = 7}, Bytes(200, 'p'), out);
  EXPECT_EQ(out, "\x89\x07"s + Bytes(200, 'p'));
}

TEST(WriterDeathTest, RefusesACloseCodeThatMayNotBeSent) {
  Bytes out;
  EXPECT_DEATH(append_close(CloseCode::Abnormal, "", std::nullopt, out), "CHECK failed");
  EXPECT_DEATH(append_ping(Bytes(126, 'p'), std::nullopt, out), "CHECK failed");
}

}  // namespace
}  // namespace windlass::websocket
