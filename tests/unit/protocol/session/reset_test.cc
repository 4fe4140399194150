// Resets, closes, and how long a worker waits before it comes back.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>

#include "tests/support/lone_scheduler.h"
#include "tests/support/lone_worker.h"

namespace windlass {
namespace {

using testing::ids_of;
using testing::LoneScheduler;
using testing::LoneWorker;
using testing::message;
using testing::SessionPair;

TEST(Reset, EndsTheSessionOnBothSides) {
  SessionPair pair;
  pair.start();
  pair.own_at_once = false;
  ASSERT_TRUE(pair.worker.send(message("w"), pair.now()));
  ASSERT_TRUE(pair.scheduler.send(pair.handle(), message("s"), pair.now()));
  pair.settle();
  ASSERT_TRUE(pair.scheduler.reset(pair.handle(), ErrorCode::Internal, "oops", pair.now()));
  pair.settle();
  //= RST-1
  ASSERT_EQ(pair.seen_by_scheduler<Ended>().size(), 1U);
  EXPECT_EQ(pair.seen_by_scheduler<Ended>()[0].initiator, Blame::Local);
  EXPECT_EQ(ids_of(pair.seen_by_scheduler<Ended>()[0].returned), std::vector<std::string>{"s"});
  ASSERT_EQ(pair.seen_by_worker<Ended>().size(), 1U);
  EXPECT_EQ(pair.seen_by_worker<Ended>()[0].code, "E.INTERNAL");
  EXPECT_EQ(pair.seen_by_worker<Ended>()[0].reason, "oops");
  EXPECT_EQ(pair.seen_by_worker<Ended>()[0].initiator, Blame::Peer);
  EXPECT_EQ(ids_of(pair.seen_by_worker<Ended>()[0].returned), std::vector<std::string>{"w"});
  EXPECT_EQ(pair.scheduler.sessions(), 0U);
  EXPECT_EQ(pair.worker.state(), SessionState::Backoff);
  EXPECT_EQ(pair.worker.session(), nullptr);
}

TEST(Reset, ThatAWorkerReceivesIsFollowedByACloseOf1000) {
  for (const bool accepted : {false, true}) {
    LoneWorker worker;
    if (accepted) {
      worker.make_ready();
    } else {
      worker.start();
    }
    // Before the accept the scheduler may not know the tenant.
    worker.say(Reset{"E.LIMIT.CAPACITY", "full", {}}, {.tenant = accepted ? "acme" : "unknown"});
    //= RST-1
    //= ENV-12
    ASSERT_EQ(worker.closes.size(), 1U);
    EXPECT_EQ(worker.closes[0].code, kCloseNormal);
    EXPECT_TRUE(worker.sent("control.reset").empty());
    EXPECT_EQ(worker.endpoint.state(), SessionState::Backoff);
  }
}

TEST(Reset, IsWhatAWorkerSaysThatLeavesWithoutADrain) {
  LoneWorker worker;
  worker.make_ready();
  worker.endpoint.stop("the machine goes down", worker.now());
  worker.settle();
  //= RST-8
  ASSERT_EQ(worker.sent("control.reset").size(), 1U);
  EXPECT_EQ(worker.sent("control.reset")[0].code, "E.SESSION.DRAINING");
  EXPECT_EQ(worker.endpoint.state(), SessionState::Closed);
}

TEST(Reset, IsFollowedByACloseOf1011OrOf1012) {
  for (const auto& [code, close] : std::map<ErrorCode, std::uint16_t>{{ErrorCode::Internal, 1011},
                                                                      {ErrorCode::SessionRestarting, 1012}}) {
    LoneScheduler scheduler;
    const ConnectionId connection = scheduler.open();
    scheduler.make_ready(connection);
    scheduler.endpoint.reset(scheduler.handle(), code, "reason", scheduler.now());
    scheduler.settle();
    //= RST-1
    EXPECT_EQ(scheduler.refusal(connection), to_string(code));
    EXPECT_EQ(scheduler.closes[connection].code, close);
  }
}

TEST(Reset, IsSaidAndCarriedOutToAPeerThatDoesNotRead) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.make_ready(connection);
  scheduler.endpoint.set_transport_busy(connection, true, scheduler.now());
  scheduler.endpoint.reset(scheduler.handle(), ErrorCode::Internal, "oops", scheduler.now());
  scheduler.settle();
  //= RST-1
  EXPECT_EQ(scheduler.refusal(connection), "E.INTERNAL");
}

TEST(Reset, KeepsItsWordsWithinTheirBounds) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.make_ready(connection);
  std::string reason(limits::kReasonBytesMax - 1, 'x');
  reason += "\xE2\x82\xAC and more";  // the bound falls into a character
  scheduler.endpoint.reset(scheduler.handle(), ErrorCode::Internal, reason, scheduler.now());
  scheduler.settle();
  //= RST-1
  EXPECT_EQ(scheduler.resets(connection).at(0).reason, std::string(limits::kReasonBytesMax - 1, 'x'));
  EXPECT_LE(scheduler.closes[connection].reason.size(), limits::kCloseReasonBytesMax);
}

TEST(Reset, MakesTheWorkerStartAfresh) {
  LoneWorker worker;
  worker.make_ready();
  worker.say(Reset{"E.INTERNAL", "", {}});
  worker.advance(seconds{1});
  EXPECT_EQ(worker.notes.back().type, "control.handshake");
  worker.say(LoneWorker::ack_for(worker.notes.back().id));
  //= RST-2
  EXPECT_EQ(worker.notes.back().type, "control.register");
}

TEST(Reset, OfAResumeEndsTheSessionToo) {
  LoneWorker worker;
  worker.make_ready();
  ASSERT_TRUE(worker.endpoint.send(message("m"), worker.now()));
  worker.settle();
  worker.lose_connection();
  worker.advance(seconds{1});
  worker.greet();
  worker.say(Reset{"E.SESSION.INVALID_TOKEN", "", {}});
  //= RST-2
  ASSERT_EQ(worker.seen<Ended>().size(), 1U);
  EXPECT_EQ(ids_of(worker.seen<Ended>()[0].returned), std::vector<std::string>{"m"});
  worker.advance(2 * limits::kBackoffFirst);
  worker.say(LoneWorker::ack_for(worker.notes.back().id));
  EXPECT_EQ(worker.notes.back().type, "control.register");
}

TEST(Reset, ByAWorkerBeforeItsAcceptLeavesItsSessionResumable) {
  LoneWorker worker;
  worker.make_ready();
  worker.lose_connection();
  worker.advance(seconds{1});
  worker.greet();
  ASSERT_EQ(worker.notes.back().type, "control.resume");
  worker.say(Heartbeat{});
  //= RST-1
  ASSERT_EQ(worker.sent("control.reset").size(), 1U);
  EXPECT_EQ(worker.sent("control.reset")[0].code, "E.PROTO.STATE");
  EXPECT_TRUE(worker.seen<Ended>().empty());
  worker.advance(2 * limits::kBackoffFirst);
  worker.greet();
  EXPECT_EQ(worker.notes.back().type, "control.resume");
  EXPECT_EQ(worker.notes.back().session_id, "s-1");
}

TEST(Reset, ByAWorkerThatRefusesTheAcceptEndsItsSession) {
  LoneWorker worker;
  worker.make_ready();
  worker.lose_connection();
  worker.advance(seconds{1});
  worker.greet();
  SessionAccept other = LoneWorker::accept(true);
  other.session_id = "s-2";
  worker.say(other);
  //= RST-1
  //= RES-3
  ASSERT_EQ(worker.sent("control.reset").size(), 1U);
  EXPECT_EQ(worker.sent("control.reset")[0].code, "E.SESSION.MISMATCH");
  EXPECT_EQ(worker.seen<Ended>().size(), 1U);
}

TEST(Reset, OfAConnectionBeforeItsAcceptLeavesTheSchedulersSessionAsItIs) {
  LoneScheduler scheduler;
  const ConnectionId first = scheduler.open();
  const auto accept = scheduler.make_ready(first);
  const ConnectionId second = scheduler.open();
  scheduler.greet(second);
  scheduler.say(second, Reset{"E.INTERNAL", "", {}});
  //= RST-1
  EXPECT_EQ(scheduler.closes.at(second).code, kCloseNormal);
  EXPECT_FALSE(scheduler.closes.contains(first));
  EXPECT_TRUE(scheduler.seen<Ended>().empty());
  const ConnectionId third = scheduler.open();
  scheduler.greet(third);
  scheduler.say(third, scheduler.resume_of(accept));
  EXPECT_TRUE(scheduler.last_accept(third).resumed);
}

TEST(Close, WithoutAResetLeavesTheSessionResumable) {
  for (const std::uint16_t code : std::vector<std::uint16_t>{1000, 1001, 1006, 1011, 1012}) {
    LoneWorker worker;
    worker.make_ready();
    worker.lose_connection(code);
    //= RST-3
    //= RST-10
    EXPECT_TRUE(worker.seen<Ended>().empty()) << code;
    worker.advance(seconds{1});
    worker.greet();
    EXPECT_EQ(worker.notes.back().type, "control.resume") << code;
  }
}

TEST(Close, Of1000AfterACompletedDrainIsTheEnd) {
  LoneWorker worker;
  worker.make_ready();
  worker.endpoint.drain("maintenance", seconds{60}, worker.now());
  worker.endpoint.complete_drain(worker.now());
  worker.settle();
  worker.lose_connection(kCloseNormal);
  //= RST-3
  EXPECT_EQ(worker.endpoint.state(), SessionState::Closed);
  ASSERT_EQ(worker.seen<Ended>().size(), 1U);
  EXPECT_EQ(worker.seen<Ended>()[0].code, "");
}

TEST(Close, Of1000OnALaterConnectionIsNoAnswerToADrain) {
  LoneWorker worker;
  worker.make_ready();
  worker.endpoint.drain("maintenance", seconds{60}, worker.now());
  worker.endpoint.complete_drain(worker.now());
  worker.settle();
  worker.lose_connection(1006);
  worker.advance(seconds{1});
  worker.lose_connection(kCloseNormal);  // during the handshake
  //= RST-3
  EXPECT_EQ(worker.endpoint.state(), SessionState::Backoff);
  EXPECT_TRUE(worker.seen<Ended>().empty());
}

TEST(Stop, GivesUpInEveryState) {
  for (int step = 0; step < 7; ++step) {
    LoneWorker worker;
    if (step >= 1) worker.start();
    if (step >= 2) worker.say(LoneWorker::ack_for(worker.notes.back().id));
    if (step >= 3) worker.say(LoneWorker::accept(), {.ack_request = true});
    if (step >= 3) {
      ASSERT_TRUE(worker.endpoint.send(message("m"), worker.now()));
    }
    if (step >= 4) worker.lose_connection();
    if (step >= 5) worker.advance(seconds{1});
    if (step >= 6) worker.say(LoneWorker::ack_for(worker.notes.back().id));
    worker.endpoint.stop("enough", worker.now());
    worker.settle();
    //= STA-2
    EXPECT_EQ(worker.endpoint.state(), SessionState::Closed) << step;
    EXPECT_EQ(worker.seen<Ended>().size(), step >= 3 ? 1U : 0U) << step;
    const std::uint64_t dials = worker.dials;
    worker.say(LoneWorker::accept(true));
    worker.endpoint.start(worker.now());
    worker.advance(seconds{400});
    EXPECT_EQ(worker.dials, dials) << step;
    EXPECT_EQ(worker.endpoint.poll_timeout(), std::nullopt) << step;
    EXPECT_EQ(worker.closes.size(), step == 0 || step == 4 ? 0U : 1U) << step;
  }
}

TEST(Backoff, IsUniformBetweenZeroAndTheDoubledFirst) {
  const SessionConfig config;
  for (std::uint32_t failures = 0; failures < 12; ++failures) {
    const Duration limit =
        std::min<Duration>(config.backoff_first * (std::int64_t{1} << failures), config.backoff_cap);
    Duration sum{};
    Duration highest{};
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
      Random random{seed};
      Backoff backoff;
      for (std::uint32_t i = 0; i < failures; ++i) static_cast<void>(backoff.next(config, random));
      const Duration delay = backoff.next(config, random);
      sum += delay;
      highest = std::max(highest, delay);
    }
    //= RST-4
    EXPECT_LE(highest, limit) << failures;
    EXPECT_GE(highest, limit * 95 / 100) << failures;
    EXPECT_NEAR(static_cast<double>((sum / 1000).count()), static_cast<double>(limit.count()) / 2,
                static_cast<double>(limit.count()) / 20)
        << failures;
  }
}

TEST(Backoff, SpreadsAFleetThatLostItsScheduler) {
  constexpr std::size_t kWorkers = 1000;
  std::map<std::int64_t, std::size_t> first_by_slot;
  std::map<std::int64_t, std::size_t> by_second;
  for (std::uint64_t seed = 1; seed <= kWorkers; ++seed) {
    LoneWorker worker{testing::worker_options(), {}, seed};
    worker.make_ready();
    const Duration start = worker.elapsed;
    const std::size_t before = worker.dialled_at.size();
    worker.dials_succeed = false;
    worker.lose_connection();
    worker.advance(seconds{180});
    for (std::size_t i = before; i < worker.dialled_at.size(); ++i) {
      const Duration at = worker.dialled_at[i] - start;
      if (i == before) ++first_by_slot[at / milliseconds{100}];
      ++by_second[at / seconds{1}];
    }
  }
  //= RST-4
  EXPECT_EQ(first_by_slot.size(), 20U) << "the first dial too waits a random part of two seconds";
  for (const auto& [slot, count] : first_by_slot) EXPECT_LE(count, 3 * kWorkers / 20) << slot;
  std::size_t settled = 0;
  for (const auto& [second, count] : by_second) settled += second >= 60 ? count : 0;
  const std::size_t mean = settled / 120;
  EXPECT_GE(mean, kWorkers / 40);
  for (const auto& [second, count] : by_second) {
    if (second < 60) continue;
    //= RST-4
    EXPECT_LE(count, 2 * mean) << "second " << second;
  }
}

TEST(Backoff, SpreadsAFleetThatWasResetInOneInstant) {
  constexpr std::size_t kWorkers = 1000;
  std::map<std::int64_t, std::size_t> by_second;
  for (std::uint64_t seed = 1; seed <= kWorkers; ++seed) {
    LoneWorker worker{testing::worker_options(), {}, seed};
    worker.make_ready();
    const Duration start = worker.elapsed;
    worker.say(Reset{"E.AUTH.INVALID_TOKEN", "", {}});
    worker.dials_succeed = false;
    worker.advance(seconds{61});
    ++by_second[(worker.dialled_at.at(1) - start) / seconds{1}];
  }
  //= RST-7
  EXPECT_GE(by_second.begin()->first, 30) << "no sooner than the cap";
  EXPECT_LE(by_second.rbegin()->first, 60);
  for (const auto& [second, count] : by_second) EXPECT_LE(count, 3 * kWorkers / 30) << second;
}

TEST(Backoff, WaitsAHintInFullAndThenSome) {
  std::vector<Duration> waits;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    LoneWorker worker{testing::worker_options(), {}, seed};
    worker.make_ready();
    const Duration start = worker.elapsed;
    worker.say(Reset{"E.SESSION.RESTARTING", "service restart", seconds{40}});
    worker.advance(seconds{40} + limits::kBackoffFirst);
    waits.push_back(worker.dialled_at.at(1) - start);
  }
  //= RST-5
  EXPECT_GE(*std::min_element(waits.begin(), waits.end()), seconds{40});
  EXPECT_LE(*std::max_element(waits.begin(), waits.end()), seconds{40} + limits::kBackoffFirst);
  EXPECT_NE(waits[0], waits[1]);
  LoneWorker worker;
  worker.make_ready();
  worker.say(Reset{"E.SESSION.RESTARTING", "", seconds{100'000}});
  worker.advance(seconds{601});
  //= RST-5
  EXPECT_EQ(worker.dials, 2U) << "at most 600 s";
}

TEST(Backoff, SpreadsAFleetThatWasPutOffByTheSameAnswer) {
  std::vector<Duration> waits;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    LoneWorker worker{testing::worker_options(), {}, seed};
    worker.start();
    const Duration start = worker.elapsed;
    worker.endpoint.handle_put_off(worker.endpoint.connection(), "503", seconds{10}, worker.now());
    worker.advance(seconds{22});
    ASSERT_GE(worker.dials, 2U);
    waits.push_back(worker.dialled_at.at(1) - start);
  }
  std::ranges::sort(waits);
  //= RST-9
  EXPECT_GE(waits.front(), seconds{10}) << "waited in full";
  EXPECT_LE(waits.back(), seconds{20} + limits::kBackoffFirst);
  EXPECT_GT(waits[150] - waits[50], seconds{3}) << "half of the fleet comes over a third of the spread";
}

TEST(Backoff, BoundsWhatAnAnswerMayAskFor) {
  LoneWorker worker;
  worker.start();
  worker.endpoint.handle_put_off(worker.endpoint.connection(), "503", seconds{1'000'000}, worker.now());
  worker.advance(seconds{640});
  ASSERT_GE(worker.dials, 2U);
  //= RST-9
  EXPECT_GE(worker.dialled_at.at(1), seconds{600});
  EXPECT_LE(worker.dialled_at.at(1), seconds{630} + limits::kBackoffFirst) << "at most 600 s, and the cap";
}

TEST(Backoff, ForgetsFailuresOnlyAfterAReadyTimeLongerThanTheCap) {
  LoneWorker worker;
  worker.make_ready();
  for (int i = 0; i < 6; ++i) {
    worker.advance(seconds{5});
    worker.say(Reset{"E.INTERNAL", "", {}});
    while (worker.endpoint.state() != SessionState::Handshaking) worker.advance(milliseconds{100});
    worker.greet();
    worker.say(LoneWorker::accept(), {.ack_request = true});
    ASSERT_EQ(worker.endpoint.state(), SessionState::Ready);
  }
  //= RST-6
  EXPECT_EQ(worker.endpoint.failures(), 6U) << "a session that is reset over and over backs off";
  worker.advance(seconds{29});
  worker.say(LoneWorker::ack(0));
  worker.advance(seconds{2});
  const std::size_t before = worker.seen<BackingOff>().size();
  worker.say(Reset{"E.INTERNAL", "", {}});
  //= RST-6
  ASSERT_EQ(worker.seen<BackingOff>().size(), before + 1);
  EXPECT_LE(worker.seen<BackingOff>().back().delay, limits::kBackoffFirst) << "as after the first failure";
  EXPECT_EQ(worker.endpoint.failures(), 1U);
}

TEST(Backoff, DoesNotChargeTheNextDialForASessionThatRanOut) {
  LoneWorker worker;
  worker.start();
  worker.greet();
  SessionAccept accept = LoneWorker::accept();
  accept.resume_ttl = milliseconds{500};
  worker.say(accept, {.ack_request = true});
  worker.advance(seconds{31});
  worker.lose_connection();
  worker.advance(seconds{2});
  ASSERT_EQ(worker.seen<Ended>().size(), 1U);
  //= RST-6
  EXPECT_EQ(worker.endpoint.failures(), 1U);
}

TEST(Backoff, FollowsTheRetryRulesOfTheErrorList) {
  std::ifstream file{WINDLASS_SCHEMA_FOLDER "/errors.json"};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  const std::regex entry{R"re("code": "([^"]+)".*"retry": "([^"]+)")re"};
  std::size_t checked = 0;
  for (std::sregex_iterator it{text.begin(), text.end(), entry}; it != std::sregex_iterator{};
       ++it, ++checked) {
    //= RST-7
    EXPECT_EQ(retries_at_cap((*it)[1].str()), (*it)[2].str() == "at_cap") << (*it)[1];
  }
  EXPECT_GT(checked, 30U);
  //= LIM-8
  EXPECT_EQ(retries_at_cap("E.SOMETHING.NEW"), retries_at_cap("E.INTERNAL"));
}

TEST(Reset, WithAnUnknownCodeIsTreatedLikeAnInternalError) {
  LoneWorker worker;
  worker.make_ready();
  worker.say(Reset{"E.FUTURE.THING", "news", {}});
  //= LIM-8
  ASSERT_EQ(worker.seen<Ended>().size(), 1U);
  EXPECT_EQ(worker.seen<Ended>()[0].code, "E.FUTURE.THING") << "the owner is told what was said";
  EXPECT_EQ(worker.endpoint.state(), SessionState::Backoff);
  worker.advance(seconds{1});
  worker.say(LoneWorker::ack_for(worker.notes.back().id));
  EXPECT_EQ(worker.notes.back().type, "control.register");
}

}  // namespace
}  // namespace windlass
