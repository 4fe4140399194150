#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <string>
#include <vector>

#include "protocol/base/random.h"
#include "protocol/function_rpc/peek.h"
#include "protocol/function_rpc/session_channel.h"

namespace windlass::function_rpc {
namespace {

ChannelLimits small_limits() {
  ChannelLimits limits;
  limits.message_bytes_max = 4096;
  limits.part_bytes = 64;
  limits.queue_messages_max = 64;
  limits.queue_bytes_max = 1 << 20;
  limits.partial_bytes_max = 8192;
  return limits;
}

std::string response(std::string_view invocation, std::size_t padding, char fill = 'x') {
  std::string body;
  append_bytes(body, 1, invocation);
  append_bytes(body, 2, std::string(padding, fill));
  return compose("", Content::InvocationResponse, body);
}

std::string of_invocation(std::string_view message) {
  return std::string{peek(message)->invocation_id};
}

// Sends everything the sender has, through the receiver.
std::vector<std::string> carry(ChannelSender& sender, ChannelReceiver& receiver,
                               std::size_t count_max = 100'000) {
  std::vector<std::string> arrived;
  const auto error = sender.pump([&](Message&& message) -> Result<Seq> {
    if (count_max-- == 0) return Error{ErrorCode::SessionWouldBlock, Blame::Peer, "no credit"};
    const Message taken = std::move(message);
    const auto complete = receiver.take(taken, [&](std::string_view whole) { arrived.emplace_back(whole); });
    EXPECT_TRUE(complete) << complete.error().reason;
    return Seq{0};
  });
  if (error) {
    EXPECT_EQ(error->code, ErrorCode::SessionWouldBlock);
  }
  return arrived;
}

TEST(SessionChannel, CarriesAWholeMessageByteForByte) {
  ChannelSender sender{small_limits(), "f"};
  ChannelReceiver receiver{small_limits()};
  const std::string message = response("a", 10);
  ASSERT_TRUE(sender.push(message));
  EXPECT_EQ(carry(sender, receiver), std::vector{message});
  EXPECT_TRUE(sender.is_empty());
}

TEST(SessionChannel, SmallOnesThatWaitTogetherGoTogetherWithinBounds) {
  ChannelLimits limits = small_limits();
  limits.together_bytes = 100;
  ChannelSender sender{limits, "f"};
  ChannelReceiver receiver{limits};
  std::vector<std::string> all;
  all.reserve(22);
  for (int i = 0; i < 20; ++i) all.push_back(response("i" + std::to_string(i), 12));
  all.push_back(response("larger", 50));
  all.push_back(response("last", 0));
  for (const std::string& each : all) ASSERT_TRUE(sender.push(each));
  EXPECT_EQ(sender.messages(), all.size());
  std::size_t frames = 0;
  std::vector<std::string> arrived;
  ASSERT_FALSE(sender.pump([&](Message&& message) -> Result<Seq> {
    const Message sent = std::move(message);
    EXPECT_LE(sent.attachment()->bytes.size(), 100U);
    ++frames;
    EXPECT_TRUE(receiver.take(sent, [&](std::string_view whole) { arrived.emplace_back(whole); }));
    return Seq{0};
  }));
  EXPECT_EQ(arrived, all);
  EXPECT_LE(frames, 9U);
  EXPECT_TRUE(sender.is_empty());
  EXPECT_EQ(sender.bytes(), 0U);
}

TEST(SessionChannel, RefusesMessagesThatGoTogetherAndAreNotWhole) {
  using namespace std::string_literals;
  for (const std::string& bytes : {""s, "\0\0\0"s, "\0\0\0\5abcd"s, "\0\0\0\1a\0\0"s, "\xff\xff\xff\xff"s}) {
    ChannelReceiver receiver{small_limits()};
    EXPECT_FALSE(receiver.take(Message{{.type = kMessageType,
                                        .id = "1",
                                        .payload = kMany,
                                        .attachment = Attachment{kAttachmentType, bytes}}},
                               [](std::string_view) {}));
  }
}

TEST(SessionChannel, LetsSmallOnesPassALargeOne) {
  ChannelSender sender{small_limits(), "f"};
  ChannelReceiver receiver{small_limits()};
  const std::string large = response("large", 3000);
  ASSERT_TRUE(sender.push(large));
  EXPECT_TRUE(carry(sender, receiver, 2).empty());  // two parts went
  ASSERT_TRUE(sender.push(response("small", 5)));
  const std::vector<std::string> arrived = carry(sender, receiver);
  ASSERT_EQ(arrived.size(), 2U);
  EXPECT_EQ(of_invocation(arrived[0]), "small");
  EXPECT_EQ(arrived[1], large);
}

// Else the runtime would take what was answered for something that never reached the worker, and run it
// again.
TEST(SessionChannel, TheEndOfAWorkerPassesNothingThatWasSaidBeforeIt) {
  ChannelSender sender{small_limits(), "f"};
  ChannelReceiver receiver{small_limits()};
  const auto ended = [](std::string_view worker) {
    std::string body;
    append_bytes(body, 1, worker);
    return compose("", Content::WorkerEnded, body);
  };
  const std::vector<std::string> said{
      response("early", 5), response("large", 3000), response("other", 2000), ended("first"),
      response("a", 1000),  response("b", 5),        ended("second worker"),  response("c", 5)};
  for (const std::string& each : said) ASSERT_TRUE(sender.push(each));
  const std::vector<std::string> arrived = carry(sender, receiver);
  EXPECT_EQ(arrived, (std::vector{said[0], said[2], said[1], said[3], said[5], said[4], said[6], said[7]}));
  EXPECT_TRUE(sender.is_empty());
  EXPECT_EQ(sender.bytes(), 0U);
}

TEST(SessionChannel, LargeOnesOfTwoInvocationsShareTheWay) {
  ChannelSender sender{small_limits(), "f"};
  ChannelReceiver receiver{small_limits()};
  ASSERT_TRUE(sender.push(response("longer", 4000)));
  ASSERT_TRUE(sender.push(response("shorter", 1000)));
  const std::vector<std::string> arrived = carry(sender, receiver);
  ASSERT_EQ(arrived.size(), 2U);
  EXPECT_EQ(of_invocation(arrived[0]), "shorter");
}

TEST(SessionChannel, KeepsTheOrderOfOneInvocationWhateverTheSizes) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    ChannelSender sender{small_limits(), "f"};
    ChannelReceiver receiver{small_limits()};
    std::vector<int> next(4, 0);
    std::vector<int> seen(4, 0);
    std::size_t arrived_count = 0;
    std::size_t pushed = 0;
    for (int step = 0; step < 300; ++step) {
      if (random.below(2) == 0) {
        const auto lane = static_cast<std::size_t>(random.below(4));
        const std::size_t size = random.below(4) == 0 ? 100 + random.below(2000) : random.below(40);
        std::string body;
        append_bytes(body, 1, std::to_string(lane));
        append_bytes(body, 2, "#" + std::to_string(next[lane]) + "/" + std::string(size, 'x'));
        if (sender.push(compose("", Content::InvocationResponse, body))) {
          ++next[lane];
          ++pushed;
        }
      }
      for (const std::string& message : carry(sender, receiver, step == 299 ? 100'000 : random.below(6))) {
        ++arrived_count;
        const auto lane = static_cast<std::size_t>(std::stoi(of_invocation(message)));
        const std::size_t at = message.find("#" + std::to_string(seen[lane]) + "/");
        EXPECT_NE(at, std::string::npos) << "lane " << lane << " lacks its message " << seen[lane];
        ++seen[lane];
      }
    }
    EXPECT_EQ(arrived_count, pushed);
    EXPECT_TRUE(sender.is_empty());
  }
}

TEST(SessionChannel, RefusesWhatIsTooLargeForEverAndWhatIsTooMuchForNow) {
  ChannelSender sender{small_limits(), "f"};
  EXPECT_EQ(sender.push(std::string(5000, 'x')).error().code, ErrorCode::LimitFrame);
  for (int i = 0; i < 64; ++i) ASSERT_TRUE(sender.push(response("a", 1)));
  EXPECT_TRUE(sender.is_full());
  EXPECT_EQ(sender.push(response("a", 1)).error().code, ErrorCode::SessionWouldBlock);
}

TEST(SessionChannel, NamesNoTwoMessagesAlike) {
  ChannelSender sender{small_limits(), "f7-"};
  std::vector<std::string> ids;
  ASSERT_TRUE(sender.push(response("a", 300)));
  ASSERT_TRUE(sender.push(response("b", 1)));
  ASSERT_FALSE(sender.pump([&](Message&& message) -> Result<Seq> {
    ids.emplace_back(message.id());
    return Seq{0};
  }));
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
  EXPECT_TRUE(ids.front().starts_with("f7-"));
}

void nothing(std::string_view) {}

class BrokenParts : public testing::TestWithParam<const char*> {};

TEST_P(BrokenParts, AreRefused) {
  ChannelReceiver receiver{small_limits()};
  const std::string bytes(10, 'x');
  const Message first{{.type = kMessageType,
                       .id = "1",
                       .payload = R"({"message":"m","offset":0,"total":30})",
                       .attachment = Attachment{kAttachmentType, bytes}}};
  ASSERT_TRUE(receiver.take(first, nothing));
  const Message next{{.type = kMessageType,
                      .id = "2",
                      .payload = GetParam(),
                      .attachment = Attachment{kAttachmentType, bytes}}};
  EXPECT_FALSE(receiver.take(next, nothing));
}

INSTANTIATE_TEST_SUITE_P(SessionChannel, BrokenParts,
                         testing::Values(R"({"message":"m","offset":0,"total":30})",   // the first again
                                         R"({"message":"m","offset":20,"total":30})",  // one is missing
                                         R"({"message":"m","offset":10,"total":19})",  // another total
                                         R"({"message":"n","offset":10,"total":30})",  // its first is missing
                                         R"({"message":"n","offset":0,"total":5})",    // more than announced
                                         R"({"message":"n","offset":0,"total":1073741824})",  // 1 GiB
                                         R"({"message":"","offset":0,"total":30})",           // no name
                                         R"({"message":"n","offset":-1,"total":30})",
                                         R"({"message":"n","total":30})", R"([])"));

// The last message that came in parts was once kept until the next one came.
TEST(SessionChannel, KeepsNothingOfAMessageThatWasTaken) {
  ChannelLimits limits;
  ChannelSender sender{limits, "f"};
  ChannelReceiver receiver{limits};
  constexpr std::size_t kLarge = 64 * 1024 * 1024;
  const std::size_t before = ::mallinfo2().hblkhd + ::mallinfo2().uordblks;
  ASSERT_TRUE(sender.push(response("a", kLarge)));
  std::size_t heard = 0;
  ASSERT_FALSE(sender.pump([&](Message&& message) -> Result<Seq> {
    const Message taken = std::move(message);
    EXPECT_TRUE(receiver.take(taken, [&](std::string_view whole) { heard = whole.size(); }));
    return Seq{0};
  }));
  EXPECT_GT(heard, kLarge);
  EXPECT_LT(::mallinfo2().hblkhd + ::mallinfo2().uordblks, before + kLarge / 2);
}

TEST(SessionChannel, BoundsWhatWaitsForItsEnd) {
  ChannelReceiver receiver{small_limits()};
  const std::string bytes(10, 'x');
  int taken = 0;
  for (int i = 0; i < 10; ++i) {
    const std::string payload = R"({"message":"m)" + std::to_string(i) + R"(","offset":0,"total":4096})";
    if (receiver.take(Message{{.type = kMessageType,
                               .id = "1",
                               .payload = payload,
                               .attachment = Attachment{kAttachmentType, bytes}}},
                      nothing))
      ++taken;
  }
  EXPECT_EQ(taken, 2);
}

TEST(SessionChannel, BoundsHowManyWaitForTheirEnd) {
  ChannelLimits limits;
  ChannelReceiver receiver{limits};
  std::size_t taken = 0;
  for (std::size_t i = 0; i < 2 * limits.partial_messages_max; ++i) {
    const std::string payload = R"({"message":"m)" + std::to_string(i) + R"(","offset":0,"total":2})";
    const MessageParts part{
        .type = kMessageType, .id = "1", .payload = payload, .attachment = Attachment{kAttachmentType, "x"}};
    if (receiver.take(Message{part}, nothing)) ++taken;
  }
  EXPECT_EQ(taken, limits.partial_messages_max);
}

TEST(SessionChannel, BeginsNoMoreThanAReceiverTakes) {
  ChannelLimits limits;
  limits.part_bytes = 16;
  ChannelSender sender{limits, "f"};
  ChannelReceiver receiver{limits};
  const std::size_t count = 4 * limits.partial_messages_max;
  for (std::size_t i = 0; i < count; ++i) ASSERT_TRUE(sender.push(response("i" + std::to_string(i), 200)));
  EXPECT_EQ(carry(sender, receiver).size(), count);
}

TEST(SessionChannel, RefusesAMessageWithoutAttachment) {
  ChannelReceiver receiver{small_limits()};
  EXPECT_FALSE(receiver.take(Message{{.type = kMessageType, .id = "1", .payload = "{}"}}, nothing));
}

}  // namespace
}  // namespace windlass::function_rpc
