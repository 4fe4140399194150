#include "tests/unit/scheduler/core/core_fixture.h"

namespace windlass {
namespace {

class Requests : public CoreTest {};

TEST_F(Requests, ForAWorkerWithoutASessionAreRefused) {
  const RequestId drain = ask<DrainWorker>(kWorker, std::string{"x"}, Duration{seconds{1}});
  const RequestId reset = ask<ResetWorker>(kWorker, std::string{"x"});
  const RequestId rotate = ask<RotateToken>(kWorker);
  const Effects effects = settle();
  for (const RequestId request : {drain, reset, rotate})
    EXPECT_EQ(refusal(effects, request), ErrorCode::SessionUnknown);
}

TEST_F(Requests, ForAWorkerOfAnotherTenantDoNotReachThisOne) {
  open(kWorker);
  const RequestId drain = ask<DrainWorker>(worker_key("w1", "other"), std::string{"x"}, Duration{seconds{1}});
  const Effects effects = settle();
  EXPECT_EQ(refusal(effects, drain), ErrorCode::SessionUnknown);
  EXPECT_TRUE(effects.session_commands.empty());
}

TEST_F(Requests, ToDrainAreStoredAndThenSaid) {
  const SessionRef session = open(kWorker);
  settle();
  const RequestId request = ask<DrainWorker>(kWorker, std::string{"upgrade"}, Duration{seconds{60}});
  const Effects effects = settle();
  EXPECT_EQ(rows("drain/acme/w1"), 1U);
  ASSERT_EQ(effects.session_commands.size(), 1U);
  const auto& drain = std::get<DrainSession>(effects.session_commands[0]);
  EXPECT_EQ(drain.session, session);
  EXPECT_EQ(drain.reason, "upgrade");
  EXPECT_EQ(drain.deadline, seconds{60});
  EXPECT_TRUE(std::holds_alternative<Done>(reply_to(effects, request)->outcome));
  EXPECT_EQ(core_->fleet().find(kWorker)->state, WorkerState::Draining);
}

TEST_F(Requests, ToDrainStopNewCommandsAndKeepTheOldOnesForLater) {
  options_.in_flight_per_worker_max = 1;
  restart();
  const SessionRef session = open(kWorker);
  submit(kWorker, "a");
  submit(kWorker, "b");
  ask<DrainWorker>(kWorker, std::string{"x"}, Duration{seconds{60}});
  settle();
  const RequestId refused = submit(kWorker, "c");
  const RequestId known = submit(kWorker, "b");
  deliver_result(session, "a");
  const Effects effects = settle();
  EXPECT_EQ(refusal(effects, refused), ErrorCode::SessionDraining);
  EXPECT_TRUE(is_accepted(effects, known));
  EXPECT_TRUE(effects.sends.empty()) << "b waits for the worker's next life";
  end(session, "");
  EXPECT_EQ(settle().writes.size(), 1U);
  EXPECT_EQ(rows("drain/"), 0U) << "what was wanted is done";
  open(kWorker);
  EXPECT_EQ(sent_ids(settle()), std::vector<std::string>{"b"});
}

TEST_F(Requests, ToDrainOutliveTheirSessionAndThisProcess) {
  const SessionRef session = open(kWorker);
  ask<DrainWorker>(kWorker, std::string{"x"}, Duration{seconds{60}});
  settle();
  end(session, "E.TIMEOUT");
  settle();
  pass(seconds{10});
  restart();
  const SessionRef next = open(kWorker);
  submit(kWorker, "a");
  const Effects effects = settle();
  ASSERT_EQ(effects.session_commands.size(), 1U);
  EXPECT_EQ(std::get<DrainSession>(effects.session_commands[0]).session, next);
  EXPECT_EQ(std::get<DrainSession>(effects.session_commands[0]).deadline, seconds{50});
  EXPECT_TRUE(effects.sends.empty());
  pass(seconds{50});
  settle();
  EXPECT_EQ(rows("drain/"), 0U) << "its time is over";
}

TEST_F(Requests, ToResetAndRotateNameTheSession) {
  const SessionRef session = open(kWorker);
  settle();
  ask<RotateToken>(kWorker);
  ask<ResetWorker>(kWorker, std::string(5000, 'x'));
  const Effects effects = settle();
  ASSERT_EQ(effects.session_commands.size(), 2U);
  EXPECT_EQ(std::get<RotateSession>(effects.session_commands[0]).session, session);
  const auto& reset = std::get<ResetSession>(effects.session_commands[1]);
  EXPECT_EQ(reset.code, ErrorCode::SessionStaleBinding);
  EXPECT_EQ(reset.reason.size(), limits::kReasonBytesMax);
}

TEST_F(Requests, ToRevokeAreRowsUntilNoTokenCanBeLeft) {
  const SessionRef session = open(kWorker);
  settle();
  ask<RevokeWorker>(kWorker);
  const Effects effects = settle();
  ASSERT_EQ(effects.session_commands.size(), 1U);
  const auto& revoke = std::get<RevokeTokens>(effects.session_commands[0]);
  EXPECT_EQ(revoke.session, session);
  EXPECT_EQ(revoke.revocation.until, now_.wall);
  restart();
  ASSERT_EQ(core_->revocations().size(), 1U);
  EXPECT_EQ(core_->revocations()[0], revoke.revocation);
  pass(options_.token_lifetime - seconds{1});
  settle();
  EXPECT_EQ(rows("revocation/"), 1U);
  pass(seconds{1});
  settle();
  EXPECT_EQ(rows("revocation/"), 0U);
}

TEST_F(Requests, ToRevokeStrikeTheNewestTokenThoughTheClockWasSetBack) {
  open(kWorker);
  settle();
  const WallTime issued = now_.wall;
  now_.wall -= seconds{5000};
  restart();
  ask<RevokeWorker>(kWorker);
  const Effects effects = settle();
  ASSERT_EQ(effects.session_commands.size(), 1U);
  EXPECT_GE(std::get<RevokeTokens>(effects.session_commands[0]).revocation.until, issued);
  EXPECT_FALSE(std::get<RevokeTokens>(effects.session_commands[0]).session.has_value())
      << "tokens of a worker that is away";
}

TEST_F(Requests, ToRevokeAreBounded) {
  options_.revocations_max = 2;
  restart();
  ask<RevokeWorker>(worker_key("a"));
  ask<RevokeWorker>(worker_key("b"));
  const RequestId third = ask<RevokeWorker>(worker_key("c"));
  const RequestId again = ask<RevokeWorker>(worker_key("a"));
  const Effects effects = settle();
  EXPECT_EQ(refusal(effects, third), ErrorCode::LimitCapacity);
  EXPECT_TRUE(std::holds_alternative<Done>(reply_to(effects, again)->outcome));
}

TEST_F(Requests, ThatMakeNoSenseAreRefusedWithAPointer) {
  struct Case {
    const char* tenant;
    const char* worker;
    std::string id;
    const char* type;
    std::string payload;
    std::optional<Duration> timeout;
    const char* pointer;
  };
  const Case cases[] = {
      {"", "w", "a", "biz.x", "{}", {}, "/tenant"},
      {"t", "", "a", "biz.x", "{}", {}, "/worker"},
      {"t", "w\n", "a", "biz.x", "{}", {}, "/worker"},
      {"t", "w", std::string(129, 'a'), "biz.x", "{}", {}, "/id"},
      {"t", "w", "~a", "biz.x", "{}", {}, "/id"},
      {"t", "w", "a", "control.drain", "{}", {}, "/type"},
      {"t", "w", "a", "biz.", "{}", {}, "/type"},
      {"t", "w", "a", "biz..x", "{}", {}, "/type"},
      {"t", "w", "a", "biz.x y", "{}", {}, "/type"},
      {"t", "w", "a", "", "{}", {}, "/type"},
      {"t", "w", "a", "biz.x", "", {}, "/payload"},
      {"t", "w", "a", "biz.x", "[]", {}, "/payload"},
      {"t", "w", "a", "biz.x", R"({"x":")" + std::string(1024 * 1024, 'x') + R"("})", {}, "/payload"},
      {"t", "w", "a", "biz.x", "{}", Duration{0}, "/timeout_ms"},
      {"t", "w", "a", "biz.x", "{}", Duration{seconds{1'000'000}}, "/timeout_ms"},
  };
  for (const Case& each : cases) {
    const RequestId request{++next_request_};
    core_->handle(SubmitCommand{request, worker_key(each.worker, each.tenant), each.id, each.type,
                                each.payload, each.timeout},
                  now_);
    const Effects effects = settle();
    const Reply* const reply = reply_to(effects, request);
    ASSERT_NE(reply, nullptr);
    const Error* const error = std::get_if<Error>(&reply->outcome);
    ASSERT_NE(error, nullptr) << each.pointer;
    EXPECT_TRUE(error->reason.starts_with(each.pointer)) << error->reason;
    EXPECT_EQ(error->blame, Blame::Peer);
  }
  EXPECT_EQ(core_->outbox().size(), 0U);
}

}  // namespace
}  // namespace windlass
