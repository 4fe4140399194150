// What the frame reader refuses, with which close code, and how early.
#include <gtest/gtest.h>

#include <string>

#include "protocol/websocket/reader.h"
#include "protocol/websocket/writer.h"
#include "tests/support/websocket_outcome.h"

namespace windlass::websocket {
namespace {

using namespace support;

const MaskKey kRefusalKey = MaskKey::from(0x0F1E2D3C);

Mask refusal_mask(Side receiver) {
  return receiver == Side::Server ? Mask{kRefusalKey} : std::nullopt;
}

class Refusal : public ::testing::TestWithParam<Side> {
 protected:
  Bytes frame(FrameHeader header, BytesView payload) const {
    if (!header.mask) header.mask = refusal_mask(GetParam());
    Bytes out;
    append_frame(header, payload, out);
    return out;
  }

  Bytes close_frame(unsigned code, BytesView reason) const {
    Bytes body{static_cast<char>(code >> 8U), static_cast<char>(code)};
    body += reason;
    return frame({.opcode = Opcode::Close}, body);
  }

  // Refused with `code` whole and at every cut; the reader stays failed.
  void expect_refused(const Bytes& stream, CloseCode code, const std::string& why, ReaderLimits limits = {},
                      std::size_t events_before = 0) const {
    const auto number = static_cast<std::uint16_t>(code);
    for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
      const Outcome outcome = read_in_two(GetParam(), stream, cut, limits);
      ASSERT_EQ(outcome.failure, number) << why << ", cut " << cut << ": " << outcome;
      ASSERT_EQ(outcome.why, why) << "cut " << cut;
      ASSERT_EQ(outcome.events.size(), events_before);
    }
  }

  // How many bytes, one at a time, until it is refused.
  std::size_t bytes_until_refused(const Bytes& stream, ReaderLimits limits = {}) const {
    FrameReader reader{GetParam(), limits};
    Outcome outcome;
    for (std::size_t i = 0; i < stream.size(); ++i) {
      if (!feed(reader, BytesView{stream}.substr(i, 1), outcome)) return i + 1;
    }
    return SIZE_MAX;
  }

  std::size_t header_bytes(std::size_t length_bytes) const {
    return 2 + length_bytes + (GetParam() == Side::Server ? 4 : 0);
  }
};
INSTANTIATE_TEST_SUITE_P(Sides, Refusal, ::testing::Values(Side::Client, Side::Server),
                         [](const auto& side) { return side.param == Side::Client ? "client" : "server"; });

//= TRN-3
TEST_P(Refusal, OfReservedBitsOnAnyFrameAfterTwoBytes) {
  for (std::uint8_t bits = 1; bits < 8; ++bits) {
    for (const auto opcode : {Opcode::Text, Opcode::Binary, Opcode::Ping, Opcode::Pong, Opcode::Close}) {
      const Bytes stream = frame({.opcode = opcode, .reserved_bits = bits}, "");
      expect_refused(stream, CloseCode::ProtocolError, "reserved bits are set");
      EXPECT_EQ(bytes_until_refused(stream), 2U);
    }
  }
}

TEST_P(Refusal, OfReservedOpcodes) {
  for (const unsigned opcode : {3U, 4U, 5U, 6U, 7U, 11U, 12U, 13U, 14U, 15U}) {
    const Bytes stream = frame({.opcode = static_cast<Opcode>(opcode)}, "x");
    expect_refused(stream, CloseCode::ProtocolError, "opcode is reserved");
    EXPECT_EQ(bytes_until_refused(stream), 2U);
  }
}

TEST_P(Refusal, OfTheWrongMasking) {
  Bytes stream;
  append_text("hello", refusal_mask(GetParam() == Side::Server ? Side::Client : Side::Server), stream);
  expect_refused(stream, CloseCode::ProtocolError,
                 GetParam() == Side::Server ? "client frame is not masked" : "server frame is masked");
  EXPECT_EQ(bytes_until_refused(stream), 2U);
}

TEST_P(Refusal, OfAContinuationWithoutAMessage) {
  for (const bool final : {false, true}) {
    expect_refused(frame({.opcode = Opcode::Continuation, .final = final}, "x"), CloseCode::ProtocolError,
                   "continuation without a message to continue");
  }
}

TEST_P(Refusal, OfAContinuationAfterAFinishedMessage) {
  const Bytes stream =
      frame({.opcode = Opcode::Text, .final = false}, "a") + frame({.opcode = Opcode::Continuation}, "b");
  const Outcome outcome = read_all(GetParam(), stream + frame({.opcode = Opcode::Continuation}, "c"));
  EXPECT_EQ(outcome.events.size(), 1U);
  EXPECT_EQ(outcome.failure, 1002);
}

TEST_P(Refusal, OfANewMessageInsideAFragmentedOne) {
  for (const auto opcode : {Opcode::Text, Opcode::Binary}) {
    expect_refused(frame({.opcode = Opcode::Binary, .final = false}, "a") + frame({.opcode = opcode}, "b"),
                   CloseCode::ProtocolError, "new message inside a fragmented one");
  }
}

TEST_P(Refusal, OfAFragmentedControlFrame) {
  for (const auto opcode : {Opcode::Ping, Opcode::Pong, Opcode::Close}) {
    expect_refused(frame({.opcode = opcode, .final = false}, ""), CloseCode::ProtocolError,
                   "control frame is fragmented");
  }
}

TEST_P(Refusal, OfAControlFrameOver125BytesFromItsFirstTwo) {
  for (const auto opcode : {Opcode::Ping, Opcode::Pong, Opcode::Close}) {
    const Bytes stream = frame({.opcode = opcode}, Bytes(126, 'c'));
    EXPECT_EQ(bytes_until_refused(stream), 2U);
    EXPECT_EQ(read_all(GetParam(), stream).why, "control frame is longer than 125 bytes");
    EXPECT_EQ(read_all(GetParam(), frame({.opcode = opcode, .length_form = LengthForm::Bits64}, "")).failure,
              1002);
  }
}

TEST_P(Refusal, OfLengthsNotInTheirShortestForm) {
  const std::string why = "frame length is not in its shortest form";
  for (const std::uint64_t length : {0U, 1U, 125U}) {
    expect_refused(frame({.length = length, .length_form = LengthForm::Bits16}, ""), CloseCode::ProtocolError,
                   why);
  }
  for (const std::uint64_t length : {0U, 125U, 126U, 65535U}) {
    expect_refused(frame({.length = length, .length_form = LengthForm::Bits64}, ""), CloseCode::ProtocolError,
                   why);
  }
}

TEST_P(Refusal, OfALengthWithItsTopBitSet) {
  for (const std::uint64_t length : {std::uint64_t{1} << 63U, ~std::uint64_t{0}}) {
    expect_refused(frame({.length = length}, ""), CloseCode::ProtocolError,
                   "frame length has its top bit set");
  }
}

//= TRN-5
TEST_P(Refusal, OfAMessageOverTheLimitFromItsHeaderAlone) {
  const ReaderLimits limits{.message_bytes_max = 1000};
  const Bytes over = frame({.length = 1001}, "");
  expect_refused(over, CloseCode::TooBig, "message is larger than allowed", limits);
  EXPECT_EQ(bytes_until_refused(over, limits), header_bytes(2));
  EXPECT_EQ(bytes_until_refused(frame({.length = (std::uint64_t{1} << 63U) - 1}, ""), limits),
            header_bytes(8));
  EXPECT_EQ(read_all(GetParam(), frame({}, Bytes(1000, 'b')), limits).events.size(), 1U);
}

TEST_P(Refusal, OfFragmentsThatTogetherPassTheLimitFromTheHeaderThatDoesIt) {
  const ReaderLimits limits{.message_bytes_max = 100};
  const Bytes stream = frame({.final = false}, Bytes(60, 'b')) +
                       frame({.opcode = Opcode::Continuation, .final = false}, Bytes(40, 'b'));
  EXPECT_EQ(read_all(GetParam(), stream, limits).failure, std::nullopt);
  expect_refused(stream + frame({.opcode = Opcode::Continuation, .length = 1}, ""), CloseCode::TooBig,
                 "message is larger than allowed", limits);
  EXPECT_EQ(read_all(GetParam(), stream + frame({.opcode = Opcode::Continuation}, ""), limits).events.size(),
            1U);
}

TEST_P(Refusal, OfMoreThan16KiBBeforeAuthenticationByDefault) {
  EXPECT_EQ(read_all(GetParam(), frame({}, Bytes(16 * 1024, 'b'))).events.size(), 1U);
  EXPECT_EQ(read_all(GetParam(), frame({.length = 16 * 1024 + 1}, "")).failure, 1009);
}

TEST_P(Refusal, OfAMessageInProgressWhenTheLimitIsLoweredUnderIt) {
  FrameReader reader{GetParam(), {.message_bytes_max = 1000}};
  Outcome outcome;
  ASSERT_TRUE(feed(reader, frame({.final = false}, Bytes(500, 'b')), outcome));
  reader.set_message_bytes_max(100);
  EXPECT_FALSE(feed(reader, frame({.opcode = Opcode::Continuation}, ""), outcome));
  EXPECT_EQ(outcome.failure, 1009);
}

TEST_P(Refusal, OfMoreFragmentsThanAllowedEvenEmptyOnes) {
  const ReaderLimits limits{.fragments_max = 5};
  Bytes stream = frame({.final = false}, "");
  for (int i = 0; i < 4; ++i) stream += frame({.opcode = Opcode::Continuation, .final = false}, "");
  EXPECT_EQ(read_all(GetParam(), stream, limits).failure, std::nullopt);
  expect_refused(stream + frame({.opcode = Opcode::Continuation}, ""), CloseCode::TooBig,
                 "message has more fragments than allowed", limits);
  //= TRN-5
  EXPECT_EQ(ReaderLimits{}.fragments_max, 4096U);
}

TEST_P(Refusal, OfTooManyFragmentsCountsAfreshForEachMessage) {
  const ReaderLimits limits{.fragments_max = 2};
  Bytes stream;
  for (int i = 0; i < 10; ++i) {
    stream += frame({.final = false}, "a") + frame({.opcode = Opcode::Continuation}, "b") + frame({}, "c");
  }
  EXPECT_EQ(read_all(GetParam(), stream, limits).events.size(), 20U);
}

TEST_P(Refusal, OfTextThatIsNotUtf8) {
  for (const char* bad : {"\x80", "\xC0\x80", "\xC3(", "\xE2\x82(", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                          "\xFF", "\xC3", "long enough for the wide loop \xE2\x82"}) {
    expect_refused(frame({.opcode = Opcode::Text}, bad), CloseCode::InvalidPayload, "text is not UTF-8");
    EXPECT_EQ(read_all(GetParam(), frame({.opcode = Opcode::Binary}, bad)).events.size(), 1U);
  }
}

//= TRN-4
TEST_P(Refusal, OfTextAtItsFirstBadByteBeforeTheMessageEnds) {
  const Bytes stream = frame({.opcode = Opcode::Text, .length = 100}, "abc\xFF");
  EXPECT_EQ(bytes_until_refused(stream), stream.size());
  const Bytes later = frame({.opcode = Opcode::Text, .final = false}, "\xE2") +
                      frame({.opcode = Opcode::Continuation, .final = false, .length = 50}, "\x82(");
  EXPECT_EQ(bytes_until_refused(later), later.size());
}

TEST_P(Refusal, OfTextThatEndsInsideACharacter) {
  const Bytes begin = frame({.opcode = Opcode::Text, .final = false}, "\xE2\x82");
  for (const char* end : {"", "a"}) {
    expect_refused(begin + frame({.opcode = Opcode::Continuation}, end), CloseCode::InvalidPayload,
                   "text is not UTF-8");
  }
}

TEST_P(Refusal, OfACloseWithHalfACode) {
  expect_refused(frame({.opcode = Opcode::Close}, "\x03"), CloseCode::ProtocolError,
                 "close frame has half a code");
}

TEST_P(Refusal, OfEveryCloseCodeThatMayNotBeSentAndOfNoOther) {
  for (unsigned code = 0; code <= 0xFFFF; ++code) {
    const bool good =
        (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
    const Outcome outcome = read_all(GetParam(), close_frame(code, ""));
    ASSERT_EQ(outcome.events.size(), good ? 1U : 0U) << code;
    ASSERT_EQ(outcome.failure, good ? std::nullopt : std::optional<std::uint16_t>{1002}) << code;
  }
}

TEST_P(Refusal, OfACloseReasonThatIsNotUtf8) {
  for (const char* bad : {"\xFF", "cut \xE2\x82"}) {
    expect_refused(close_frame(1000, bad), CloseCode::InvalidPayload, "close reason is not UTF-8");
  }
}

TEST_P(Refusal, IsFinalAndLaterBytesChangeNothing) {
  FrameReader reader{GetParam()};
  Outcome outcome;
  EXPECT_FALSE(feed(reader, frame({.opcode = static_cast<Opcode>(3)}, ""), outcome));
  EXPECT_FALSE(feed(reader, frame({}, "fine by itself"), outcome));
  EXPECT_TRUE(outcome.events.empty());
  EXPECT_EQ(reader.failure_code(), CloseCode::ProtocolError);
}

TEST_P(Refusal, CarriesTheErrorCodeAndBlamesThePeer) {
  FrameReader reader{GetParam(), {.message_bytes_max = 10}};
  Bytes input = frame({}, Bytes(11, 'b'));
  reader.handle_bytes(input);
  const auto limit = reader.poll_event();
  ASSERT_FALSE(limit.has_value());
  EXPECT_EQ(limit.error().code, ErrorCode::LimitFrame);
  EXPECT_EQ(limit.error().blame, Blame::Peer);

  FrameReader second{GetParam()};
  input = frame({.reserved_bits = 1}, "");
  second.handle_bytes(input);
  const auto protocol = second.poll_event();
  ASSERT_FALSE(protocol.has_value());
  EXPECT_EQ(protocol.error().code, ErrorCode::ProtoWebSocket);
}

TEST_P(Refusal, KeepsTheMessagesThatCameBeforeIt) {
  Bytes stream = frame({.opcode = Opcode::Text}, "good") + frame({.opcode = Opcode::Ping}, "p");
  stream += frame({.opcode = Opcode::Text}, "\xFF");
  const Outcome outcome = read_all(GetParam(), stream);
  EXPECT_EQ(outcome.events.size(), 2U);
  EXPECT_EQ(outcome.failure, 1007);
}

TEST(FrameReaderDeathTest, RefusesNewInputBeforeTheLastIsUsedUp) {
  FrameReader reader{Side::Client};
  Bytes input = "xx";
  reader.handle_bytes(input);
  EXPECT_DEATH(reader.handle_bytes(input), "CHECK failed");
}

}  // namespace
}  // namespace windlass::websocket
