// What one tenant may take, all of its workers and all loops together, and that it is never another's.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/support/lone_scheduler.h"

namespace windlass {
namespace {

using testing::Envelope;
using testing::LoneScheduler;

// Two loops of one process: both know acme and globex by the same accounts, of which acme has terms.
struct TwoLoops {
  explicit TwoLoops(const TenantTerms& terms, const SessionConfig& config = {})
      : acme(config, terms), globex(config), first(config, 7), second(config, 8) {
    for (LoneScheduler* loop : {&first, &second}) {
      loop->admission.accounts = {{"acme", &acme}, {"globex", &globex}};
    }
  }

  // A worker that has come as far as it gets. Its connection; what it was refused with, if so.
  static ConnectionId join(LoneScheduler& loop, const Envelope& worker) {
    const ConnectionId connection = loop.open();
    loop.greet(connection, 2, worker);
    loop.say(connection, LoneScheduler::registration(), worker);
    return connection;
  }
  static std::string verdict(LoneScheduler& loop, const Envelope& worker) {
    return loop.refusal(join(loop, worker));
  }
  static void violate(LoneScheduler& loop, ConnectionId connection) {
    loop.endpoint.handle_bad_frame(connection, {ErrorCode::ProtoSchema, "bad", "biz.test", "/x: why"},
                                   loop.now());
    loop.settle();
  }

  TenantAccount acme;
  TenantAccount globex;
  LoneScheduler first;
  LoneScheduler second;
};

const Envelope kOne{.tenant = "acme", .sender_id = "i-1"};
const Envelope kTwo{.tenant = "acme", .sender_id = "i-2"};
const Envelope kThree{.tenant = "acme", .sender_id = "i-3"};
const Envelope kOther{.tenant = "globex", .sender_id = "i-1"};

TEST(TenantSessions, AreBoundedOverAllLoopsAndTouchNoOtherTenant) {
  TwoLoops loops{{.sessions_max = 2}};
  EXPECT_EQ(TwoLoops::verdict(loops.first, kOne), "");
  EXPECT_EQ(TwoLoops::verdict(loops.second, kTwo), "");
  const ConnectionId third = TwoLoops::join(loops.first, kThree);
  //= LIM-9
  EXPECT_EQ(loops.first.refusal(third), "E.LIMIT.CAPACITY");
  EXPECT_GT(loops.first.resets(third)[0].retry_after, Duration{});
  EXPECT_EQ(TwoLoops::verdict(loops.first, kOther), "");
  EXPECT_EQ(loops.acme.sessions(), 2U);
  EXPECT_EQ(loops.acme.pending(), 0U);
}

TEST(TenantSessions, OfAFullTenantMayBeginAnewAndResume) {
  TwoLoops loops{{.sessions_max = 1}};
  LoneScheduler& loop = loops.first;
  TwoLoops::join(loop, kOne);
  const ConnectionId anew = TwoLoops::join(loop, kOne);
  //= LIM-9
  EXPECT_EQ(loop.refusal(anew), "") << "it takes the place of its own session";
  EXPECT_EQ(loops.acme.sessions(), 1U);
  const auto accept = loop.last_accept(anew);
  loop.endpoint.handle_closed(anew, loop.now());
  EXPECT_EQ(TwoLoops::verdict(loops.second, kTwo), "E.LIMIT.CAPACITY") << "one that may resume counts";
  const ConnectionId back = loop.open();
  loop.greet(back);
  loop.say(back, loop.resume_of(accept));
  EXPECT_EQ(loop.refusal(back), "");
  EXPECT_EQ(loops.acme.sessions(), 1U);
}

TEST(TenantSessions, GiveTheirPlaceBackHoweverTheyEnd) {
  TwoLoops loops{{.sessions_max = 1}};
  LoneScheduler& loop = loops.first;
  loop.endpoint.handle_closed(TwoLoops::join(loop, kOne), loop.now());
  loop.advance(loop.config.resume_ttl);
  //= LIM-9
  EXPECT_EQ(TwoLoops::verdict(loop, kTwo), "") << "the resume window of the first has passed";
  loop.endpoint.reset(loop.handle("i-2"), ErrorCode::Internal, "told to", loop.now());
  EXPECT_EQ(loops.acme.sessions(), 0U) << "though its connection is still to be closed";
  EXPECT_EQ(TwoLoops::verdict(loop, kThree), "") << "the second was reset";
  const SessionConfig config;
  TenantAccount account{config, {.sessions_max = 1}};
  {
    LoneScheduler short_lived;
    short_lived.admission.accounts = {{"acme", &account}};
    short_lived.make_ready(short_lived.open());
    EXPECT_EQ(account.sessions(), 1U);
  }
  EXPECT_EQ(account.sessions(), 0U) << "its endpoint is gone";
}

TEST(TenantHandshakes, ThatWaitAreBoundedOverAllLoopsAndTouchNoOtherTenant) {
  TwoLoops loops{{.pending_handshakes_max = 2}};
  LoneScheduler& loop = loops.first;
  const ConnectionId waits = loop.open();
  loop.greet(waits, 2, kOne);
  loops.second.greet(loops.second.open(), 2, kTwo);
  const ConnectionId third = loop.open();
  loop.greet(third, 2, kThree);
  //= LIM-9
  EXPECT_EQ(loop.refusal(third), "E.LIMIT.CAPACITY");
  EXPECT_GT(loop.resets(third)[0].retry_after, Duration{});
  EXPECT_EQ(TwoLoops::verdict(loop, kOther), "");
  loop.say(waits, LoneScheduler::registration(), kOne);
  EXPECT_EQ(TwoLoops::verdict(loop, kThree), "") << "the first has its accept and waits no more";
}

TEST(TenantHandshakes, AreCountedOnlyWhileTheyWait) {
  TwoLoops loops{{.pending_handshakes_max = 1}};
  LoneScheduler& loop = loops.first;
  const ConnectionId gone = loop.open();
  loop.greet(gone);
  EXPECT_EQ(loops.acme.pending(), 1U);
  loop.endpoint.handle_closed(gone, loop.now());
  EXPECT_EQ(loops.acme.pending(), 0U);
  const ConnectionId late = loop.open();
  loop.greet(late);
  loop.advance(loop.config.handshake_stage);
  EXPECT_EQ(loop.refusal(late), "E.TIMEOUT");
  EXPECT_EQ(loops.acme.pending(), 0U);
  const ConnectionId wrong = loop.open();
  loop.greet(wrong);
  loop.say(wrong, Heartbeat{});
  EXPECT_EQ(loop.refusal(wrong), "E.PROTO.STATE");
  EXPECT_EQ(loops.acme.pending(), 0U);
  const ConnectionId leaving = loop.open();
  loop.greet(leaving);
  loop.settle_at_once = false;  // its close is not answered yet
  loop.say(leaving, Reset{.code = "E.SESSION.DRAINING", .reason = "leaves", .retry_after = {}});
  //= LIM-9
  EXPECT_EQ(loops.acme.pending(), 0U);
}

TEST(TenantHandshakes, OfStrangersThatNameTheTenantTakeNothing) {
  TwoLoops loops{{.pending_handshakes_max = 1}};
  LoneScheduler& loop = loops.first;
  for (int i = 0; i < 3; ++i) loop.open();  // silent
  Handshake guessed = LoneScheduler::handshake();
  guessed.token = "guessed";
  loop.settle_at_once = false;  // refused, and not yet gone
  for (int i = 0; i < 3; ++i) loop.say(loop.open(), guessed);
  loop.settle_at_once = true;
  const ConnectionId honest = loop.open();
  loop.greet(honest);
  //= LIM-9
  EXPECT_EQ(loop.refusal(honest), "");
  EXPECT_EQ(loops.acme.pending(), 1U);
  const ConnectionId stranger = loop.open();
  loop.say(stranger, guessed);
  EXPECT_EQ(loop.refusal(stranger), "E.AUTH.INVALID_TOKEN") << "it does not learn that the tenant is full";
}

TEST(TenantRate, IsOfAllSessionsTogetherOnAllLoopsAndTouchesNoOtherTenant) {
  TwoLoops loops{{.frames_per_second_max = 100}};
  const ConnectionId one = TwoLoops::join(loops.first, kOne);
  const ConnectionId two = TwoLoops::join(loops.second, kTwo);
  const ConnectionId other = TwoLoops::join(loops.first, kOther);
  for (int i = 0; i < 500; ++i) {
    loops.first.say(one, LoneScheduler::ack(0), kOne);
    loops.second.say(two, LoneScheduler::ack(0), kTwo);
  }
  EXPECT_EQ(loops.first.refusal(one) + loops.second.refusal(two), "");
  loops.second.say(two, LoneScheduler::ack(0), kTwo);
  //= LIM-9
  EXPECT_EQ(loops.second.refusal(two), "E.LIMIT.RATE");
  EXPECT_EQ(loops.first.refusal(one), "") << "the frame that was one too many was not its";
  for (int i = 0; i < 5000; ++i) loops.first.say(other, LoneScheduler::ack(0), kOther);
  EXPECT_EQ(loops.first.refusal(other), "");
  loops.first.advance(milliseconds{500});
  for (int i = 0; i < 50; ++i) loops.first.say(one, LoneScheduler::ack(0), kOne);
  EXPECT_EQ(loops.first.refusal(one), "") << "half a second gives half of them back";
  loops.first.say(one, LoneScheduler::ack(0), kOne);
  EXPECT_EQ(loops.first.refusal(one), "E.LIMIT.RATE");
}

// What piled up while the process stood still is no more than the tenant may send.
//= LIM-9
TEST(TenantRate, IsNotPassedByWhatCameWhileNobodyListened) {
  TwoLoops loops{{.frames_per_second_max = 100}};
  const ConnectionId one = TwoLoops::join(loops.first, kOne);
  for (int stall = 0; stall < 3; ++stall) {
    loops.first.advance(seconds{5});
    for (int i = 0; i < 60 * 5; ++i) loops.first.say(one, LoneScheduler::ack(0), kOne);
  }
  EXPECT_EQ(loops.first.refusal(one), "");
}

TEST(TenantRate, NeverGivesMoreThanItsBurstHoweverLongItWasQuiet) {
  TenantAccount account{SessionConfig{}, {.frames_per_second_max = 7}};
  int taken = 0;
  while (account.take_frame(Instant{seconds{3600}})) ++taken;
  EXPECT_EQ(taken, 70);
  //= LIM-9
  EXPECT_FALSE(account.take_frame(Instant{seconds{3600} + milliseconds{142}}));
  EXPECT_TRUE(account.take_frame(Instant{seconds{3600} + milliseconds{143}}));
}

TEST(TenantRate, HoldsWhenManyThreadsTakeAtTheSameTime) {
  TenantAccount account{SessionConfig{}, {.sessions_max = 1'000, .frames_per_second_max = 100}};
  std::atomic<int> frames{0};
  std::vector<std::vector<TenantAccount::Place>> places(4);
  {
    std::vector<std::jthread> threads;
    threads.reserve(places.size());
    for (auto& each : places) {
      threads.emplace_back([&] {
        for (int n = 0; n < 600; ++n) {
          if (account.take_frame(Instant{seconds{1}})) ++frames;
          if (auto place = account.take_session()) each.push_back(std::move(*place));
        }
      });
    }
  }
  //= LIM-9
  EXPECT_EQ(frames, 1'000);
  EXPECT_EQ(account.sessions(), 1'000U);
  places.clear();
  EXPECT_EQ(account.sessions(), 0U);
}

TEST(TenantThresholds, ReplaceThoseOfAllSessions) {
  struct Case {
    Envelope worker;
    double mem_pct;
    double disk_pct;
    bool is_short;
  };
  const TenantTerms terms{.mem_pct_max = 50, .disk_pct_max = 99};
  for (const Case& each : {Case{kOne, 50, 10, true}, Case{kOne, 49, 98, false}, Case{kOne, 10, 99, true},
                           Case{kOther, 89, 94, false}, Case{kOther, 90, 10, true}}) {
    TwoLoops loops{terms};
    const ConnectionId connection = TwoLoops::join(loops.first, each.worker);
    Heartbeat heartbeat;
    heartbeat.mem_pct = each.mem_pct;
    heartbeat.disk_pct = each.disk_pct;
    loops.first.say(connection, heartbeat, each.worker);
    //= LIM-9
    //= LIV-7
    EXPECT_EQ(loops.first.seen<LoadReported>().back().is_short(), each.is_short)
        << each.worker.tenant << " " << each.mem_pct << " " << each.disk_pct;
  }
}

TEST(TenantThresholds, CanBeOffForOneTenant) {
  TwoLoops loops{{.mem_pct_max = 0, .load_hysteresis_pct = 20}};
  const ConnectionId connection = TwoLoops::join(loops.first, kOne);
  Heartbeat heartbeat;
  for (const auto& [memory, disk, is_short] :
       {std::tuple{100.0, 94.0, false}, std::tuple{100.0, 95.0, true}, std::tuple{100.0, 75.0, true},
        std::tuple{100.0, 74.0, false}}) {
    heartbeat.mem_pct = memory;
    heartbeat.disk_pct = disk;
    loops.first.say(connection, heartbeat, kOne);
    //= LIM-9
    EXPECT_EQ(loops.first.seen<LoadReported>().back().is_short(), is_short) << disk;
  }
}

TEST(TenantHeartbeats, HaveAnIntervalAndALadderOfTheirOwn) {
  TwoLoops loops{{.heartbeat_interval = seconds{5},
                  .heartbeat_misses_warn = 2,
                  .heartbeat_misses_degraded = 4,
                  .heartbeat_misses_lost = 6}};
  LoneScheduler& loop = loops.first;
  const ConnectionId connection = TwoLoops::join(loop, kOne);
  //= LIM-9
  EXPECT_EQ(loop.last_accept(connection).heartbeat_interval, seconds{5});
  const auto levels = [&loop] {
    std::vector<Liveness> all;
    for (const LivenessChanged& each : loop.seen<LivenessChanged>()) all.push_back(each.level);
    return all;
  };
  using Levels = std::vector<Liveness>;
  loop.advance(seconds{9});
  EXPECT_EQ(levels(), Levels{});
  loop.advance(seconds{2});
  EXPECT_EQ(levels(), Levels{Liveness::Warn});
  EXPECT_EQ(loop.seen<LivenessChanged>().back().interval, seconds{5});
  loop.advance(seconds{10});
  EXPECT_EQ(levels(), (Levels{Liveness::Warn, Liveness::Degraded}));
  loop.advance(seconds{10});
  EXPECT_EQ(levels(), (Levels{Liveness::Warn, Liveness::Degraded, Liveness::Lost}));
  const ConnectionId other = TwoLoops::join(loop, kOther);
  EXPECT_EQ(loop.last_accept(other).heartbeat_interval, limits::kHeartbeatInterval);
}

TEST(TenantHeartbeats, OfASessionStayWhatItWasTold) {
  TwoLoops loops{{.heartbeat_interval = seconds{5}}};
  LoneScheduler& loop = loops.first;
  const ConnectionId connection = TwoLoops::join(loop, kOne);
  loops.acme.set_terms({.heartbeat_interval = seconds{60}});
  loop.advance(seconds{6});
  //= LIM-9
  EXPECT_EQ(loop.seen<LivenessChanged>().size(), 1U) << "it was told 5 s";
  EXPECT_EQ(loop.last_accept(connection).heartbeat_interval, seconds{5});
  EXPECT_EQ(loop.last_accept(TwoLoops::join(loop, kTwo)).heartbeat_interval, seconds{60});
}

TEST(TenantSessions, WithoutTermsAreBoundedByAShareOfAll) {
  SessionConfig config;
  config.tenant_sessions_max = 2;
  TwoLoops loops{{.sessions_max = 3}, config};
  const Envelope first{.tenant = "globex", .sender_id = "i-1"};
  const Envelope second{.tenant = "globex", .sender_id = "i-2"};
  const Envelope third{.tenant = "globex", .sender_id = "i-3"};
  EXPECT_EQ(TwoLoops::verdict(loops.first, first), "");
  EXPECT_EQ(TwoLoops::verdict(loops.second, second), "");
  //= LIM-9
  EXPECT_EQ(TwoLoops::verdict(loops.first, third), "E.LIMIT.CAPACITY");
  for (const Envelope& each : {kOne, kTwo, kThree}) EXPECT_EQ(TwoLoops::verdict(loops.first, each), "");
}

TEST(TenantSessions, ThatWaitForAResumeMakeRoomTheYoungestFirst) {
  TwoLoops loops{{.sessions_max = 3}};
  LoneScheduler& loop = loops.first;
  const ConnectionId oldest = TwoLoops::join(loop, kOne);
  const ConnectionId younger = TwoLoops::join(loop, kTwo);
  TwoLoops::join(loop, kOther);
  EXPECT_EQ(TwoLoops::verdict(loop, kThree), "");
  loop.endpoint.handle_closed(younger, loop.now());
  loop.endpoint.handle_closed(oldest, loop.now());
  const Envelope fourth{.tenant = "acme", .sender_id = "i-4"};
  //= LIM-9
  EXPECT_EQ(TwoLoops::verdict(loop, fourth), "");
  EXPECT_TRUE(loop.endpoint.find("acme", "i-1").has_value()) << "the one that has been here for longest";
  EXPECT_FALSE(loop.endpoint.find("acme", "i-2").has_value());
  ASSERT_EQ(loop.seen<Ended>().size(), 1U);
  EXPECT_EQ(loop.seen<Ended>()[0].code, "E.LIMIT.CAPACITY");
  EXPECT_TRUE(loop.endpoint.find("globex", "i-1").has_value());
  EXPECT_EQ(loops.acme.sessions(), 3U);
}

TEST(TenantSessions, OfTheTenantThatHasMostWaitingMakeRoomInAFullTable) {
  SessionConfig config;
  config.sessions_max = 3;
  TwoLoops loops{{}, config};
  LoneScheduler& loop = loops.first;
  for (const Envelope& each : {kOne, kTwo}) {
    loop.endpoint.handle_closed(TwoLoops::join(loop, each), loop.now());
  }
  loop.endpoint.handle_closed(TwoLoops::join(loop, kOther), loop.now());
  const Envelope late{.tenant = "globex", .sender_id = "i-9"};
  //= LIM-5
  EXPECT_EQ(TwoLoops::verdict(loop, late), "");
  EXPECT_TRUE(loop.endpoint.find("globex", "i-1").has_value());
  EXPECT_FALSE(loop.endpoint.find("acme", "i-2").has_value());
  EXPECT_EQ(loop.endpoint.counters().made_room, 1U);
}

TEST(SchemaModes, DecideWhatAViolationCostsAndNeverWhetherItIsRefused) {
  for (const SchemaMode mode : {SchemaMode::Strict, SchemaMode::Warn, SchemaMode::Count}) {
    TwoLoops loops{{.schema_mode = mode}};
    LoneScheduler& loop = loops.first;
    const ConnectionId connection = TwoLoops::join(loop, kOne);
    loop.notes[connection].clear();
    for (int i = 0; i < 100; ++i) TwoLoops::violate(loop, connection);
    const bool strict = mode == SchemaMode::Strict;
    const std::size_t refused = strict ? 16 : 100;
    //= LIM-9
    EXPECT_EQ(loop.refusal(connection), strict ? "E.LIMIT.ERRORS" : "");
    ASSERT_EQ(loop.acks(connection).size(), refused);
    EXPECT_EQ(loop.acks(connection).back().info, "E.PROTO.SCHEMA /x: why");
    ASSERT_EQ(loop.seen<Refused>().size(), refused);
    EXPECT_EQ(loop.seen<Refused>().back().is_quiet, mode == SchemaMode::Count);
    EXPECT_TRUE(loop.seen<Delivered>().empty());
    const ConnectionId other = TwoLoops::join(loop, kOther);
    for (int i = 0; i < 17; ++i) TwoLoops::violate(loop, other);
    EXPECT_EQ(loop.refusal(other), "E.LIMIT.ERRORS") << "another tenant's are charged";
  }
}

TEST(SchemaModes, SayNothingOfWhatIsNoMatterOfTheSchema) {
  TwoLoops loops{{.schema_mode = SchemaMode::Count}};
  LoneScheduler& loop = loops.first;
  const ConnectionId connection = TwoLoops::join(loop, kOne);
  for (int i = 0; i < 17; ++i) loop.say(connection, SessionAccept{});  // a scheduler's frame
  //= LIM-9
  EXPECT_EQ(loop.refusal(connection), "E.LIMIT.ERRORS");
  ASSERT_FALSE(loop.seen<Refused>().empty());
  EXPECT_FALSE(loop.seen<Refused>().back().is_quiet);
}

TEST(SchemaModes, AreStrictBeforeTheAccept) {
  TwoLoops loops{{.schema_mode = SchemaMode::Count}};
  const ConnectionId connection = loops.first.open();
  loops.first.greet(connection);
  TwoLoops::violate(loops.first, connection);
  //= LIM-3
  //= LIM-9
  EXPECT_EQ(loops.first.refusal(connection), "E.PROTO.SCHEMA");
}

TEST(SchemaModes, LeaveTheRateToBoundWhatTheyForgive) {
  for (const bool of_tenant : {false, true}) {
    SessionConfig config;
    TenantTerms terms{.schema_mode = SchemaMode::Count};
    if (of_tenant) {
      terms.frames_per_second_max = 5;
    } else {
      config.frames_per_second_max = 50;
    }
    TwoLoops loops{terms, config};
    const ConnectionId connection = TwoLoops::join(loops.first, kOne);
    for (int i = 0; i < 50; ++i) TwoLoops::violate(loops.first, connection);
    EXPECT_EQ(loops.first.refusal(connection), "");
    TwoLoops::violate(loops.first, connection);
    //= LIM-6
    //= LIM-9
    EXPECT_EQ(loops.first.refusal(connection), "E.LIMIT.RATE");
  }
}

TEST(TenantTerms, ThatChangeAreInForceAtOnceAndThrowNobodyOut) {
  TwoLoops loops{{}};
  LoneScheduler& loop = loops.first;
  const ConnectionId one = TwoLoops::join(loop, kOne);
  TwoLoops::join(loop, kTwo);
  for (int i = 0; i < 10; ++i) TwoLoops::violate(loop, one);
  loops.acme.set_terms({.sessions_max = 1, .schema_mode = SchemaMode::Warn});
  EXPECT_EQ(loop.endpoint.sessions(), 2U);
  //= LIM-9
  EXPECT_EQ(TwoLoops::verdict(loop, kThree), "E.LIMIT.CAPACITY");
  for (int i = 0; i < 100; ++i) TwoLoops::violate(loop, one);
  EXPECT_EQ(loop.refusal(one), "") << "a session that was up before";
  loops.acme.set_terms({});
  EXPECT_EQ(TwoLoops::verdict(loop, kThree), "");
}

}  // namespace
}  // namespace windlass
