// Tokens as sessions use them: proof of arrival, rotation, revocation.
#include <gtest/gtest.h>

#include "tests/support/lone_scheduler.h"
#include "tests/support/lone_worker.h"

namespace windlass {
namespace {

using testing::LoneScheduler;
using testing::LoneWorker;
using testing::Note;
using testing::SessionPair;

std::uint64_t generation(const LoneScheduler& scheduler, const Note& accept) {
  return scheduler.tokens.verify(accept.token, scheduler.now().wall).value().gen;
}

// Opens a connection and resumes with the token of this accept. Gives the code of the refusal, or nothing.
std::string resume(LoneScheduler& scheduler, const Note& accept) {
  const ConnectionId connection = scheduler.open();
  scheduler.greet(connection);
  scheduler.say(connection, scheduler.resume_of(accept));
  return scheduler.refusal(connection);
}

TEST(SessionToken, GrowsByOneGenerationWithEveryAccept) {
  LoneScheduler scheduler;
  const Note first = scheduler.make_ready(scheduler.open());
  const ConnectionId second = scheduler.open();
  scheduler.greet(second);
  scheduler.say(second, scheduler.resume_of(first));
  //= TOK-2
  EXPECT_GT(generation(scheduler, scheduler.last_accept(second)), generation(scheduler, first));
  EXPECT_NE(scheduler.last_accept(second).token, first.token);
}

TEST(SessionToken, StaysGoodUntilTheNextOneIsAcknowledged) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  const Note first = scheduler.make_ready(connection);
  ASSERT_TRUE(scheduler.endpoint.rotate_token(scheduler.handle(), scheduler.now()));
  scheduler.settle();
  //= TOK-2
  EXPECT_EQ(resume(scheduler, first), "") << "the new one may have been lost";
  EXPECT_TRUE(scheduler.seen<TwinSuspected>().empty());
}

TEST(SessionToken, IsReplacedOnceTheNextOneIsAcknowledged) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  const Note first = scheduler.make_ready(connection);
  ASSERT_TRUE(scheduler.endpoint.rotate_token(scheduler.handle(), scheduler.now()));
  scheduler.settle();
  const Note second = scheduler.last_accept(connection);
  Ack refusal;
  refusal.ok = false;
  refusal.for_id = second.id;
  scheduler.say(connection, refusal);
  Ack proof;
  proof.for_id = second.id;
  scheduler.say(connection, proof);
  //= TOK-2
  EXPECT_EQ(resume(scheduler, first), "E.SESSION.INVALID_TOKEN");
  EXPECT_EQ(resume(scheduler, second), "");
}

TEST(SessionToken, IsReplacedOnceTheNextOneIsUsed) {
  LoneScheduler scheduler;
  const Note first = scheduler.make_ready(scheduler.open());
  const ConnectionId connection = scheduler.open();
  scheduler.greet(connection);
  scheduler.say(connection, scheduler.resume_of(first));
  const Note second = scheduler.last_accept(connection);
  EXPECT_EQ(resume(scheduler, second), "");
  //= TOK-2
  EXPECT_EQ(resume(scheduler, first), "E.SESSION.INVALID_TOKEN");
}

// Accepts of one connection, of which a third one followed. The worker has acknowledged the second.
struct TwoAccepts {
  Note first;
  Note second;
};

TwoAccepts acknowledge_the_second_of_three(LoneScheduler& scheduler) {
  const ConnectionId connection = scheduler.open();
  const auto rotate = [&] {
    EXPECT_TRUE(scheduler.endpoint.rotate_token(scheduler.handle(), scheduler.now()));
    scheduler.settle();
    return scheduler.last_accept(connection);
  };
  const Note first = scheduler.make_ready(connection);
  const Note second = rotate();
  rotate();
  Ack proof;
  proof.for_id = second.id;
  scheduler.say(connection, proof);
  return {first, second};
}

TEST(SessionToken, IsNotProvedByTheAckOfAnOlderAccept) {
  LoneScheduler scheduler;
  const auto [first, second] = acknowledge_the_second_of_three(scheduler);
  //= TOK-2
  EXPECT_EQ(resume(scheduler, second), "") << "the third may have been lost";
}

TEST(SessionToken, IsReplacedByTheAckOfAnAcceptThatIsNotTheNewest) {
  LoneScheduler scheduler;
  const auto [first, second] = acknowledge_the_second_of_three(scheduler);
  //= TOK-2
  //= FEN-4
  EXPECT_EQ(resume(scheduler, first), "E.SESSION.INVALID_TOKEN") << "the worker has the second";
  EXPECT_EQ(scheduler.endpoint.counters().twins_suspected, 1U);
}

TEST(SessionToken, OfAPeerThatAcknowledgesNoAcceptIsProvedByTheLastFewOnly) {
  for (const bool is_newest : {false, true}) {
    LoneScheduler scheduler;
    const ConnectionId connection = scheduler.open();
    const Note first = scheduler.make_ready(connection);
    Note second = first;
    for (std::size_t i = 0; i < 3 * limits::kAcceptsUnproved; ++i) {
      ASSERT_TRUE(scheduler.endpoint.rotate_token(scheduler.handle(), scheduler.now()));
      scheduler.settle();
      if (i == 0) second = scheduler.last_accept(connection);
    }
    const Note newest = scheduler.last_accept(connection);
    Ack proof;
    proof.for_id = is_newest ? newest.id : second.id;
    scheduler.say(connection, proof);
    //= TOK-2
    EXPECT_EQ(resume(scheduler, first), is_newest ? "E.SESSION.INVALID_TOKEN" : "");
  }
}

TEST(SessionToken, LivesToTheEndOfAResumeWindowThatBeganLate) {
  SessionConfig config;
  config.heartbeat_interval = seconds{600};
  config.resume_ttl = seconds{7200};
  LoneScheduler scheduler{config};
  scheduler.tokens = testing::test_tokens(token_lifetime(config));
  const ConnectionId connection = scheduler.open();
  const Note accept = scheduler.make_ready(connection);
  scheduler.advance(config.token_rotation - seconds{1});  // and from here on nothing is heard
  while (scheduler.session()->state() == SessionState::Ready) scheduler.advance(seconds{10});
  scheduler.advance(config.resume_ttl - seconds{20});
  //= RES-1
  EXPECT_EQ(resume(scheduler, accept), "");
  EXPECT_EQ(token_lifetime({}), limits::kTokenLifetime) << "more than enough for what is set at first";
}

TEST(SessionToken, RotatesByItselfOnAConnectionThatLasts) {
  SessionConfig config = testing::quick_config();
  config.token_rotation = seconds{100};
  SessionPair pair{testing::worker_options(), config};
  pair.start();
  std::vector<std::string> tokens;
  pair.filter = [&](const Frame& frame, bool) {
    if (const auto* accept = std::get_if<SessionAccept>(&frame.body))
      tokens.emplace_back(accept->session_token);
    return true;
  };
  const std::size_t established = pair.seen_by_worker<Established>().size();
  const Seq position = pair.worker.session()->stream().send_window().next_seq();
  pair.advance(seconds{350});
  //= TOK-6
  EXPECT_EQ(tokens.size(), 3U);
  EXPECT_EQ(pair.worker.state(), SessionState::Ready);
  EXPECT_EQ(pair.seen_by_worker<Established>().size(), established)
      << "nothing else about the session changes";
  EXPECT_EQ(pair.worker.session()->stream().send_window().next_seq(), position);
  std::string used;
  pair.filter = [&](const Frame& frame, bool) {
    if (const auto* resume = std::get_if<Resume>(&frame.body)) used = resume->session_token;
    return true;
  };
  pair.cut();
  pair.advance(seconds{1});
  EXPECT_EQ(used, tokens.back());
  EXPECT_EQ(pair.worker.state(), SessionState::Ready);
}

TEST(SessionToken, ThatIsNewIsAcknowledgedWhetherOrNotTheAcceptAsksForIt) {
  for (const bool asks : {false, true}) {
    LoneWorker worker;
    worker.make_ready();
    worker.say(LoneWorker::accept(true), {.id = "rotation", .ack_request = asks});
    //= TOK-6
    //= HSK-11
    ASSERT_EQ(worker.sent("control.ack").size(), 1U) << asks;
    EXPECT_TRUE(worker.sent("control.ack")[0].ok);
    EXPECT_EQ(worker.sent("control.ack")[0].for_id, "rotation");
  }
}

TEST(SessionToken, ThatIsNewChangesNoCreditAndReplaysNothing) {
  LoneWorker worker;
  worker.make_ready();
  ASSERT_TRUE(worker.endpoint.send(testing::message("m"), worker.now()));
  worker.settle();
  worker.notes.clear();
  SessionAccept accept = LoneWorker::accept(true);
  accept.credit = {};
  accept.heartbeat_interval = seconds{1};
  worker.say(accept);
  //= TOK-6
  EXPECT_TRUE(worker.sent("biz.test").empty());
  EXPECT_TRUE(worker.endpoint.session()->stream().send_window().has_credit(2));
  worker.advance(seconds{2});
  EXPECT_TRUE(worker.sent("control.heartbeat").empty());
}

TEST(SessionToken, NeverReachesTheWorkersOwner) {
  SessionPair pair;
  pair.start();
  ASSERT_TRUE(pair.scheduler.rotate_token(pair.handle(), pair.now()));
  pair.settle();
  //= TOK-8
  EXPECT_TRUE(pair.seen_by_worker<TokenRotated>().empty());
}

TEST(SessionToken, OfAnotherSessionOnALiveOneIsRefused) {
  LoneWorker worker;
  worker.make_ready();
  SessionAccept accept = LoneWorker::accept(true);
  accept.session_id = "s-2";
  worker.say(accept, {.id = "odd"});
  //= TOK-6
  ASSERT_EQ(worker.sent("control.ack").size(), 1U);
  EXPECT_FALSE(worker.sent("control.ack")[0].ok);
  worker.lose_connection();
  worker.advance(seconds{1});
  worker.greet();
  EXPECT_EQ(worker.notes.back().token, "token-1");
}

TEST(SessionToken, DoesNotPileUpForAPeerThatDoesNotRead) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.make_ready(connection);
  scheduler.endpoint.set_transport_busy(connection, true, scheduler.now());
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(scheduler.endpoint.rotate_token(scheduler.handle(), scheduler.now()));
  scheduler.endpoint.set_transport_busy(connection, false, scheduler.now());
  scheduler.settle();
  EXPECT_EQ(of_type(scheduler.notes[connection], "control.session.accept").size(), 1U);
}

TEST(SessionToken, OfARevokedWorkerEndsItsSessionAndVerifiesNoMore) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  const Note accept = scheduler.make_ready(connection);
  scheduler.elapsed += seconds{1};
  scheduler.endpoint.revoke("acme", "i-1", scheduler.now());
  scheduler.settle();
  //= TOK-7
  EXPECT_EQ(scheduler.refusal(connection), "E.AUTH.INVALID_TOKEN");
  EXPECT_EQ(scheduler.endpoint.sessions(), 0U);
  EXPECT_FALSE(scheduler.tokens.verify(accept.token, scheduler.now().wall));
  EXPECT_EQ(resume(scheduler, accept), "E.SESSION.INVALID_TOKEN");
}

TEST(SessionToken, SurvivesAResetThatCameBeforeTheHandshakeWasAccepted) {
  LoneWorker worker;
  worker.make_ready();
  worker.lose_connection();
  worker.advance(seconds{1});
  worker.say(Reset{"E.LIMIT.CAPACITY", "full", seconds{1}});
  //= RST-1
  EXPECT_TRUE(worker.seen<Ended>().empty()) << "that ended the connection only";
  worker.advance(seconds{5});
  worker.greet();
  //= RST-2
  ASSERT_EQ(worker.notes.back().type, "control.resume");
  EXPECT_EQ(worker.notes.back().token, "token-1");
}

}  // namespace
}  // namespace windlass
