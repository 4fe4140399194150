// What the frame reader accepts: messages, fragments, control frames, at every cut, in place where it can.
#include "protocol/websocket/reader.h"

#include <gtest/gtest.h>

#include <string>

#include "protocol/base/random.h"
#include "protocol/websocket/writer.h"
#include "tests/support/allocations.h"
#include "tests/support/websocket_outcome.h"

namespace windlass::websocket {
namespace {

using namespace support;
using enum Seen::Kind;

const MaskKey kKey = MaskKey::from(0xA1B2C3D4);

Mask mask_to(Side receiver) {
  return receiver == Side::Server ? Mask{kKey} : std::nullopt;
}

Bytes frame(Side receiver, Opcode opcode, bool final, BytesView payload) {
  Bytes out;
  append_frame({.opcode = opcode, .final = final, .mask = mask_to(receiver)}, payload, out);
  return out;
}

class Reader : public ::testing::TestWithParam<Side> {};
INSTANTIATE_TEST_SUITE_P(Sides, Reader, ::testing::Values(Side::Client, Side::Server),
                         [](const auto& side) { return side.param == Side::Client ? "client" : "server"; });

TEST_P(Reader, GivesTheSameEventsAtEveryCutOfAStreamOfAllFrames) {
  Bytes stream;
  std::vector<Seen> expected;
  for (const std::size_t size : {0U, 1U, 7U, 125U, 126U, 127U, 300U}) {
    const Bytes payload(size, 'x');
    append_binary(payload, mask_to(GetParam()), stream);
    expected.push_back({Binary, payload});
    append_text(payload, mask_to(GetParam()), stream);
    expected.push_back({Text, payload});
  }
  append_text(
      "gr\xC3\xBC\xC3\x9F"
      "e \xE2\x82\xAC \xF0\x9F\x98\x80",
      mask_to(GetParam()), stream);
  expected.push_back({Text,
                      "gr\xC3\xBC\xC3\x9F"
                      "e \xE2\x82\xAC \xF0\x9F\x98\x80"});
  append_ping("are you there", mask_to(GetParam()), stream);
  expected.push_back({Ping, "are you there"});
  append_pong("", mask_to(GetParam()), stream);
  expected.push_back({Pong, ""});
  append_close(CloseCode::GoingAway, "bye", mask_to(GetParam()), stream);
  expected.push_back({Close, "bye", 1001});

  EXPECT_EQ(read_all(GetParam(), stream), (Outcome{expected, std::nullopt, ""}));
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    ASSERT_EQ(read_in_two(GetParam(), stream, cut), (Outcome{expected, std::nullopt, ""})) << "cut " << cut;
  }
  Random random{1};
  EXPECT_EQ(read_in_pieces(GetParam(), stream, 1, random), (Outcome{expected, std::nullopt, ""}));
}

TEST_P(Reader, LetsControlFramesComeBetweenFragments) {
  Bytes stream = frame(GetParam(), Opcode::Text, false, "one ");
  append_ping("p1", mask_to(GetParam()), stream);
  stream += frame(GetParam(), Opcode::Continuation, false, "two ");
  append_pong("p2", mask_to(GetParam()), stream);
  append_ping("p3", mask_to(GetParam()), stream);
  stream += frame(GetParam(), Opcode::Continuation, true, "three");
  const Outcome expected{
      {{Ping, "p1"}, {Pong, "p2"}, {Ping, "p3"}, {Text, "one two three"}}, std::nullopt, ""};
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    ASSERT_EQ(read_in_two(GetParam(), stream, cut), expected) << "cut " << cut;
  }
}

TEST_P(Reader, JoinsACharacterCutByFragments) {
  const Bytes euro = "\xE2\x82\xAC";
  Bytes stream = frame(GetParam(), Opcode::Text, false, euro.substr(0, 1));
  stream += frame(GetParam(), Opcode::Continuation, false, "");
  stream += frame(GetParam(), Opcode::Continuation, false, euro.substr(1, 1));
  stream += frame(GetParam(), Opcode::Continuation, true, euro.substr(2));
  EXPECT_EQ(read_all(GetParam(), stream), (Outcome{{{Text, euro}}, std::nullopt, ""}));
}

TEST_P(Reader, IgnoresEverythingAfterAClose) {
  Bytes stream;
  append_close(CloseCode::Normal, "", mask_to(GetParam()), stream);
  stream += "\xFF\xFF not a frame";
  FrameReader reader{GetParam()};
  Outcome outcome;
  EXPECT_TRUE(feed(reader, stream, outcome));
  EXPECT_TRUE(reader.is_closed());
  EXPECT_TRUE(feed(reader, "still not one", outcome));
  EXPECT_EQ(outcome, (Outcome{{{Close, "", 1000}}, std::nullopt, ""}));
}

TEST_P(Reader, ReportsACloseWithoutBodyAsNoStatus) {
  Bytes stream;
  append_close(CloseCode::NoStatus, "", mask_to(GetParam()), stream);
  EXPECT_EQ(read_all(GetParam(), stream), (Outcome{{{Close, "", 1005}}, std::nullopt, ""}));
}

// The event's bytes of a reader that is given `input` in one piece.
BytesView first_message(FrameReader& reader, std::span<char> input) {
  reader.handle_bytes(input);
  const auto event = reader.poll_event();
  return std::get<Message>(event.value().value()).payload;
}

TEST_P(Reader, HandsAWholeFrameOutWhereItLies) {
  Bytes input = frame(GetParam(), Opcode::Text, true, "in place");
  FrameReader reader{GetParam()};
  const BytesView payload = first_message(reader, input);
  EXPECT_EQ(payload, "in place");
  EXPECT_GE(payload.data(), input.data());
  EXPECT_EQ(payload.data() + payload.size(), input.data() + input.size());
  EXPECT_EQ(reader.buffer_bytes(), Bytes{}.capacity());
}

TEST_P(Reader, AllocatesNothingInASteadyStreamEvenWhenTheInputCutsFrames) {
  Bytes frames;
  for (int i = 0; i < 8; ++i) frames += frame(GetParam(), Opcode::Text, true, Bytes(512, 'a'));
  FrameReader reader{GetParam()};
  std::uint64_t messages = 0;
  std::uint64_t before = 0;
  for (int round = 0; round < 20; ++round) {
    if (round == 1) before = support::allocation_count();
    Bytes input = frames;
    if (round >= 1) ++before;  // the copy just made
    const std::span<char> whole{input};
    for (const auto piece : {whole.first(700), whole.subspan(700)}) {
      reader.handle_bytes(piece);
      for (;;) {
        const auto event = reader.poll_event();
        ASSERT_TRUE(event.has_value());
        if (!*event) break;
        ++messages;
      }
    }
  }
  EXPECT_EQ(messages, 160U);
  EXPECT_EQ(support::allocation_count(), before);
}

TEST_P(Reader, GivesALargeBufferBackAfterItsMessage) {
  const Bytes stream = frame(GetParam(), Opcode::Binary, true, Bytes(200'000, 'b'));
  FrameReader reader{GetParam(), {.message_bytes_max = limits::kFrameBytesMax}};
  Outcome outcome;
  ASSERT_TRUE(feed(reader, stream.substr(0, 150'000), outcome));
  EXPECT_GE(reader.buffer_bytes(), 149'000U);
  ASSERT_TRUE(feed(reader, stream.substr(150'000), outcome));
  ASSERT_EQ(outcome.events.size(), 1U);
  EXPECT_LE(reader.buffer_bytes(), 4096U);
}

TEST_P(Reader, TakesMemoryForBytesThatCameNotForBytesAnnounced) {
  const Bytes stream = frame(GetParam(), Opcode::Binary, true, Bytes(1'000'000, 'b'));
  FrameReader reader{GetParam(), {.message_bytes_max = limits::kFrameBytesMax}};
  Outcome outcome;
  ASSERT_TRUE(feed(reader, stream.substr(0, 100), outcome));
  EXPECT_LE(reader.buffer_bytes(), 1024U);
}

TEST_P(Reader, GivesBackWhatItDidNotUseWhenItsOwnerPauses) {
  Bytes input =
      frame(GetParam(), Opcode::Text, true, "first") + frame(GetParam(), Opcode::Text, true, "second");
  FrameReader reader{GetParam()};
  EXPECT_EQ(first_message(reader, input), "first");
  const std::span<char> rest = reader.take_input();
  EXPECT_FALSE(reader.poll_event().value().has_value());
  EXPECT_EQ(first_message(reader, rest), "second");
}

TEST_P(Reader, AppliesARaisedLimitToTheNextFrameOfTheSameInput) {
  Bytes input = frame(GetParam(), Opcode::Text, true, "token") +
                frame(GetParam(), Opcode::Binary, true, Bytes(20'000, 'b'));
  FrameReader reader{GetParam()};  // 16 KiB, as before authentication
  EXPECT_EQ(first_message(reader, input), "token");
  reader.set_message_bytes_max(limits::kFrameBytesMax);
  const auto event = reader.poll_event();
  EXPECT_EQ(std::get<Message>(event.value().value()).payload.size(), 20'000U);
}

TEST_P(Reader, RoundTripsRandomMessagesRandomlyFragmentedAndCut) {
  constexpr std::uint64_t kSeed = 0x5EED0006;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  Random random{kSeed};
  const char* const characters[] = {"a", "{", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
  for (int round = 0; round < 400; ++round) {
    Bytes stream;
    Outcome expected;
    for (std::uint64_t message = 1 + random.below(6); message-- > 0;) {
      const bool text = random.one_in(2);
      const std::size_t size = random.below(random.one_in(4) ? 70'000 : 300);
      Bytes payload;
      while (payload.size() < size) {
        if (text) payload += characters[random.below(5)];
        if (!text) payload += static_cast<char>(random.next());
      }
      BytesView left = payload;
      Opcode opcode = text ? Opcode::Text : Opcode::Binary;
      for (bool final = false; !final; opcode = Opcode::Continuation) {
        final = random.one_in(3);
        const BytesView part = final ? left : left.substr(0, random.below(left.size() + 1));
        left.remove_prefix(part.size());
        const Mask mask = GetParam() == Side::Server
                              ? Mask{MaskKey::from(static_cast<std::uint32_t>(random.next()))}
                              : Mask{};
        append_frame({.opcode = opcode, .final = final, .mask = mask}, part, stream);
        if (!final && random.one_in(3)) {
          const Bytes body(random.below(126), 'p');
          append_ping(body, mask, stream);
          expected.events.push_back({Ping, body});
        }
      }
      expected.events.push_back({text ? Text : Binary, payload});
    }
    const ReaderLimits limits{.message_bytes_max = 80'000};
    ASSERT_EQ(read_all(GetParam(), stream, limits), expected) << "round " << round;
    for (const std::size_t piece_max : {1U, 20U, 5000U}) {
      if (stream.size() > 300 * piece_max && piece_max < 5000)
        continue;  // long streams in tiny pieces take long
      ASSERT_EQ(read_in_pieces(GetParam(), stream, piece_max, random, limits), expected) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace windlass::websocket
