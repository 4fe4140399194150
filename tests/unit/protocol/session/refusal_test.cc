// What the scheduler's endpoint tells its owner of those it did not let in, and of frames that came twice.
#include <gtest/gtest.h>

#include "tests/support/lone_scheduler.h"

namespace windlass {
namespace {

using testing::LoneScheduler;
using testing::Note;

TEST(Refusal, NamesWhoAskedForWhatAndWhyNot) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.say(connection, LoneScheduler::handshake(9), {.id = "h-1"});
  const auto refusal = scheduler.endpoint.poll_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->connection, connection);
  EXPECT_EQ(refusal->tenant, "acme");
  EXPECT_EQ(refusal->sender_id, "i-1");
  EXPECT_EQ(refusal->frame_type, "control.handshake");
  EXPECT_EQ(refusal->frame_id, "h-1");
  EXPECT_EQ(refusal->code, ErrorCode::ProtoVersion);
  EXPECT_FALSE(refusal->reason.empty());
  EXPECT_FALSE(refusal->was_resume);
  EXPECT_FALSE(refusal->was_unreadable);
  EXPECT_FALSE(scheduler.endpoint.poll_refusal()) << "told once";
}

TEST(Refusal, SaysThatItWasAResume) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.greet(connection);
  scheduler.say(connection, Resume{"s-none", "not.a-token", 0, 0, {256, 1 << 20}});
  const auto refusal = scheduler.endpoint.poll_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_TRUE(refusal->was_resume);
  EXPECT_EQ(refusal->sender_id, "i-1");
}

TEST(Refusal, OfAFrameThatCannotBeReadClaimsNothing) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  const std::string long_type(100'000, 't');
  scheduler.endpoint.handle_bad_frame(
      connection, {ErrorCode::ProtoSchema, "b-1", long_type, "/type: too long"}, scheduler.now());
  const auto refusal = scheduler.endpoint.poll_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_TRUE(refusal->was_unreadable);
  EXPECT_TRUE(refusal->sender_id.empty());
  EXPECT_EQ(refusal->frame_id, "b-1");
  EXPECT_EQ(refusal->frame_type.size(), limits::kTypeBytesMax) << "a stranger's words are clipped";
}

TEST(Refusal, OnlyTheLastAreKeptForAnOwnerThatDoesNotLook) {
  LoneScheduler scheduler;
  constexpr std::size_t kMore = 44;
  for (std::size_t i = 0; i < limits::kRefusalsKept + kMore; ++i) {
    scheduler.say(scheduler.open(), LoneScheduler::handshake(9), {.id = "h-" + std::to_string(i)});
  }
  EXPECT_EQ(scheduler.endpoint.counters().refusals_forgotten, kMore);
  std::size_t told = 0;
  for (auto refusal = scheduler.endpoint.poll_refusal(); refusal;
       refusal = scheduler.endpoint.poll_refusal()) {
    if (told++ > 0) continue;
    EXPECT_EQ(refusal->frame_id, "h-44") << "the oldest made room";
  }
  EXPECT_EQ(told, limits::kRefusalsKept);
}

TEST(Refused, NamesTheFrameAndWhoseRefusalItWas) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.make_ready(connection);
  scheduler.endpoint.handle_bad_frame(
      connection, {ErrorCode::ProtoSchema, "b-1", "biz.x", "/payload: missing"}, scheduler.now());
  scheduler.settle();
  ASSERT_EQ(scheduler.seen<Refused>().size(), 1U);
  EXPECT_EQ(scheduler.seen<Refused>()[0].frame_id, "b-1");
  EXPECT_EQ(scheduler.seen<Refused>()[0].frame_type, "biz.x");
  EXPECT_FALSE(scheduler.seen<Refused>()[0].by_peer);
}

TEST(EndpointCounters, CountFramesThatCameTwiceOnAnySession) {
  LoneScheduler scheduler;
  for (const char* instance : {"i-1", "i-2"}) {
    const ConnectionId connection = scheduler.open();
    scheduler.make_ready(connection, 2, {.sender_id = instance});
    const auto send = [&] {
      scheduler.say(connection, Data{"biz.test", "{}", {}}, {.id = "d", .sender_id = instance, .seq = 0});
    };
    send();
    send();
    send();
  }
  EXPECT_EQ(scheduler.endpoint.counters().duplicates, 4U);
}

TEST(EndpointCounters, CountFramesOutsideTheWindow) {
  SessionConfig config;
  config.receive_credit = {4, limits::kWindowBytes};
  LoneScheduler scheduler{config};
  const ConnectionId connection = scheduler.open();
  scheduler.make_ready(connection);
  scheduler.say_data(connection, 4);
  scheduler.say_data(connection, 3);
  //= WIN-7
  EXPECT_EQ(scheduler.endpoint.counters().outside_window, 1U);
}

}  // namespace
}  // namespace windlass
