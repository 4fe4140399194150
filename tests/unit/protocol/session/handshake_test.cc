// The greeting, as both sides judge it: each wrong step has one answer and one state.
#include <gtest/gtest.h>

#include "tests/support/lone_scheduler.h"
#include "tests/support/lone_worker.h"

namespace windlass {
namespace {

using testing::LoneScheduler;
using testing::LoneWorker;
using testing::message;
using testing::Note;

TEST(Handshake, MustBeTheFirstFrame) {
  const std::vector<FrameBody> bodies = {
      LoneScheduler::registration(), Heartbeat{},    Ack{}, Drain{}, Reset{"E.INTERNAL", "", {}},
      UnknownControl{"control.new"}, SessionAccept{}};
  for (const FrameBody& body : bodies) {
    LoneScheduler scheduler;
    const ConnectionId connection = scheduler.open();
    scheduler.say(connection, body);
    //= HSK-1
    EXPECT_EQ(scheduler.refusal(connection), "E.AUTH.HANDSHAKE_REQUIRED");
    EXPECT_EQ(scheduler.closes[connection].code, kCloseInternal);
    EXPECT_EQ(scheduler.endpoint.connections(), 0U);
  }
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.say_data(connection, 0);
  //= HSK-1
  EXPECT_EQ(scheduler.refusal(connection), "E.AUTH.HANDSHAKE_REQUIRED");
  EXPECT_TRUE(scheduler.events.empty());
}

TEST(Handshake, IsWhatAWorkerSaysFirst) {
  LoneWorker worker;
  worker.start();
  //= HSK-1
  ASSERT_EQ(testing::types(worker.notes), std::vector<std::string>{"control.handshake"});
  EXPECT_EQ(worker.endpoint.state(), SessionState::Handshaking);
  //= HSK-2
  EXPECT_EQ(worker.notes[0].protocol, 2U);
  //= HSK-3
  EXPECT_EQ(worker.notes[0].instance_id, "i-1");
  EXPECT_EQ(worker.notes[0].sender_id, "i-1");
  EXPECT_TRUE(worker.notes[0].ack_request);
}

TEST(Handshake, ChoosesTheRevision) {
  for (const std::uint64_t protocol : {1U, 2U}) {
    LoneScheduler scheduler;
    const ConnectionId connection = scheduler.open();
    EXPECT_EQ(scheduler.endpoint.revision(connection), std::nullopt);
    scheduler.greet(connection, protocol);
    //= HSK-2
    EXPECT_EQ(scheduler.endpoint.revision(connection), static_cast<Revision>(protocol));
  }
  for (const std::uint64_t protocol : {std::uint64_t{0}, std::uint64_t{3}, limits::kIntegerMax}) {
    LoneScheduler scheduler;
    const ConnectionId connection = scheduler.open();
    scheduler.greet(connection, protocol);
    //= HSK-2
    EXPECT_EQ(scheduler.refusal(connection), "E.PROTO.VERSION");
  }
}

TEST(Handshake, MustBeSentInTheWorkersOwnName) {
  LoneScheduler scheduler;
  ConnectionId connection = scheduler.open();
  scheduler.say(connection, LoneScheduler::handshake(2, "somebody-else"));
  //= HSK-3
  EXPECT_EQ(scheduler.refusal(connection), "E.SESSION.MISMATCH");
  connection = scheduler.open();
  scheduler.say(connection, LoneScheduler::handshake(), {.role = Role::Scheduler});
  EXPECT_EQ(scheduler.refusal(connection), "E.SESSION.MISMATCH");
  connection = scheduler.open();
  scheduler.say(connection, LoneScheduler::handshake(), {.role = Role::Runtime});
  EXPECT_EQ(scheduler.refusal(connection), "") << "a runtime may dial too";
}

// Says what a handshake is judged with, and answers as told.
class Scripted final : public Admission {
 public:
  Result<Done> admit(const AdmissionRequest& request) const override {
    asked.push_back(std::string{request.tenant} + "/" + std::string{request.instance_id} + "/" +
                    request.peer.certificate_fingerprint);
    if (!answer) return Done{};
    return Error{*answer, Blame::Peer, "as told"};
  }
  Result<Done> admit_resume(const ResumeRequest&) const override { return Done{}; }
  std::optional<ErrorCode> answer;
  mutable std::vector<std::string> asked;
};

TEST(Handshake, IsAuthenticatedBeforeAnythingElseIsLookedAt) {
  using enum ErrorCode;
  for (const ErrorCode code :
       {AuthMissingToken, AuthInvalidToken, AuthModeUnsupported, AuthMtlsRequired, SessionDenied}) {
    const SessionConfig config;
    Scripted admission;
    admission.answer = code;
    TokenAuthority tokens = testing::test_tokens();
    SchedulerEndpoint endpoint{{.scheduler_id = "sched"}, config, admission, tokens, 1};
    const Now now{Instant{seconds{1}}, WallTime{}};
    PeerFacts peer;
    peer.certificate_fingerprint = "f";
    endpoint.handle_opened(ConnectionId{1}, peer, now);
    Frame frame;
    frame.id = "h";
    frame.tenant = "acme";
    frame.sender_id = "i-1";
    frame.body = LoneScheduler::handshake();
    endpoint.handle_frame(ConnectionId{1}, frame, now);
    frame.body = LoneScheduler::registration();
    endpoint.handle_frame(ConnectionId{1}, frame, now);
    const auto out = endpoint.poll_transmit(now);
    ASSERT_TRUE(out.has_value());
    //= HSK-4
    EXPECT_EQ(Note{out->frame}.code, to_string(code));
    EXPECT_FALSE(endpoint.poll_transmit(now).has_value());
    EXPECT_TRUE(endpoint.poll_close(now).has_value());
    EXPECT_EQ(admission.asked, std::vector<std::string>{"acme/i-1/f"});
    EXPECT_EQ(endpoint.sessions(), 0U);
  }
}

TEST(Handshake, TellsAnAbsentTokenFromAWrongOne) {
  LoneScheduler scheduler;
  ConnectionId connection = scheduler.open();
  Handshake body = LoneScheduler::handshake();
  body.token = "";
  scheduler.say(connection, body);
  //= HSK-4
  EXPECT_EQ(scheduler.refusal(connection), "E.AUTH.MISSING_TOKEN");
  connection = scheduler.open();
  body.token = "guess";
  scheduler.say(connection, body);
  EXPECT_EQ(scheduler.refusal(connection), "E.AUTH.INVALID_TOKEN");
  EXPECT_EQ(scheduler.endpoint.counters().handshakes_refused, 2U);
}

TEST(Handshake, BindsTheConnectionToOneTenant) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.greet(connection);
  scheduler.say(connection, LoneScheduler::registration(), {.tenant = "globex"});
  //= HSK-5
  EXPECT_EQ(scheduler.refusal(connection), "E.SESSION.TENANT_MISMATCH");
  EXPECT_EQ(scheduler.endpoint.sessions(), 0U);
}

TEST(Handshake, BindsTheConnectionToOneSender) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.greet(connection);
  scheduler.say(connection, LoneScheduler::registration(), {.sender_id = "i-2"});
  //= ENV-12
  EXPECT_EQ(scheduler.refusal(connection), "E.SESSION.MISMATCH");
}

TEST(Handshake, IsAcknowledgedAndFollowedByARegistration) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.say(connection, LoneScheduler::handshake(), {.id = "h1", .ack_request = true});
  //= HSK-6
  ASSERT_EQ(scheduler.notes[connection].size(), 1U);
  EXPECT_TRUE(scheduler.acks(connection).at(0).ok);
  EXPECT_EQ(scheduler.acks(connection).at(0).for_id, "h1");
  EXPECT_EQ(scheduler.acks(connection).at(0).ack_for, "h1");
  LoneWorker worker;
  worker.start();
  worker.say(LoneWorker::ack_for("something-else"));
  EXPECT_EQ(worker.endpoint.state(), SessionState::Handshaking);
  worker.say(LoneWorker::ack_for(worker.notes[0].id));
  //= HSK-6
  EXPECT_EQ(worker.endpoint.state(), SessionState::Registered);
  EXPECT_EQ(worker.notes.back().type, "control.register");
}

TEST(Handshake, ThatIsRepeatedIsOutOfTurn) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.greet(connection);
  scheduler.greet(connection);
  //= HSK-13
  EXPECT_EQ(scheduler.refusal(connection), "E.PROTO.STATE");
}

TEST(Handshake, HasADeadlineForEachStage) {
  LoneScheduler scheduler;
  const ConnectionId silent = scheduler.open();
  scheduler.advance(milliseconds{9'999});
  EXPECT_FALSE(scheduler.closes.contains(silent));
  scheduler.advance(milliseconds{1});
  //= HSK-10
  EXPECT_EQ(scheduler.refusal(silent), "E.TIMEOUT");
  const ConnectionId greeted = scheduler.open();
  scheduler.advance(seconds{9});
  scheduler.greet(greeted);
  scheduler.advance(milliseconds{9'999});
  EXPECT_FALSE(scheduler.closes.contains(greeted)) << "each stage its own";
  scheduler.advance(milliseconds{1});
  //= HSK-10
  EXPECT_EQ(scheduler.refusal(greeted), "E.TIMEOUT");
  EXPECT_EQ(scheduler.endpoint.poll_timeout(), std::nullopt) << "nothing is left behind";
}

TEST(Handshake, ThatIsNotAnsweredMakesTheWorkerBackOff) {
  for (int answered = 0; answered < 3; ++answered) {
    LoneWorker worker;
    worker.start();
    for (int i = 0; i < answered; ++i) worker.say(LoneWorker::ack_for(worker.notes.back().id));
    worker.advance(milliseconds{9'999});
    EXPECT_TRUE(worker.closes.empty());
    // Chatter that answers nothing does not help.
    worker.say(LoneWorker::ack_for("nothing"));
    worker.endpoint.handle_timeout({worker.now().steady + milliseconds{1}, worker.now().wall});
    worker.settle();
    //= HSK-10
    ASSERT_EQ(worker.closes.size(), 1U) << answered;
    EXPECT_EQ(worker.endpoint.state(), SessionState::Backoff);
    ASSERT_EQ(worker.seen<BackingOff>().size(), 1U);
  }
}

TEST(Handshake, LeavesNoWaitingConnectionWithoutABound) {
  SessionConfig config;
  config.pending_handshakes_max = 2;
  LoneScheduler scheduler{config};
  const ConnectionId first = scheduler.open();
  const ConnectionId second = scheduler.open();
  const ConnectionId third = scheduler.open();
  //= LIM-5
  EXPECT_EQ(scheduler.refusal(first), "E.LIMIT.CAPACITY") << "it has been silent for longest";
  EXPECT_TRUE(scheduler.resets(first)[0].retry_after.has_value());
  EXPECT_EQ(scheduler.refusal(third), "");
  scheduler.make_ready(second);
  scheduler.open();
  EXPECT_EQ(scheduler.refusal(third), "") << "an accepted one makes room";
}

TEST(Handshake, TakesNoPlaceFromAPeerThatHasProvedWhoItIs) {
  SessionConfig config;
  config.pending_handshakes_max = 2;
  LoneScheduler scheduler{config};
  const ConnectionId proved = scheduler.open();
  scheduler.greet(proved);
  const ConnectionId silent = scheduler.open();
  scheduler.open();
  //= LIM-5
  EXPECT_EQ(scheduler.refusal(silent), "E.LIMIT.CAPACITY");
  EXPECT_EQ(scheduler.refusal(proved), "");
  EXPECT_EQ(scheduler.endpoint.counters().refused_by_code[static_cast<std::size_t>(ErrorCode::LimitCapacity)],
            1U);
}

TEST(Handshake, IsRefusedToTheNewestWhenEveryoneElseHasProvedWhoItIs) {
  SessionConfig config;
  config.pending_handshakes_max = 1;
  LoneScheduler scheduler{config};
  const ConnectionId proved = scheduler.open();
  scheduler.greet(proved);
  //= LIM-5
  EXPECT_EQ(scheduler.refusal(scheduler.open()), "E.LIMIT.CAPACITY");
  EXPECT_EQ(scheduler.refusal(proved), "");
}

TEST(Handshake, EndsWithAResetFromTheWorkerWithoutAnAnswer) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.greet(connection);
  scheduler.notes[connection].clear();
  scheduler.say(connection, Reset{"E.SESSION.MISMATCH", "not mine", {}});
  //= RST-1
  EXPECT_TRUE(scheduler.notes[connection].empty());
  EXPECT_EQ(scheduler.closes[connection].code, kCloseNormal);
}

}  // namespace
}  // namespace windlass
