#include "tests/unit/scheduler/core/core_fixture.h"

namespace windlass {
namespace {

using Ids = std::vector<std::string>;

class StoreFailure : public CoreTest {};

TEST_F(StoreFailure, RefusesWhatWasNotStoredAndSendsNothingOfIt) {
  open(kWorker);
  settle();
  fill_store();
  const RequestId request = submit(kWorker, "a");
  const Effects effects = settle();
  EXPECT_EQ(refusal(effects, request), ErrorCode::StoreFull);
  EXPECT_TRUE(effects.sends.empty());
  EXPECT_EQ(state("a"), std::nullopt);
  EXPECT_TRUE(core_->store_health().is_failing);
  EXPECT_NE(core_->store_health().reason.find("full"), std::string::npos);
}

TEST_F(StoreFailure, RefusesNewSubmissionsAtOnceWithoutAskingTheStore) {
  fill_store();
  submit(kWorker, "a");
  settle();
  const RequestId second = submit(kWorker, "b");
  const auto effects = core_->poll_effects();
  ASSERT_TRUE(effects.has_value());
  EXPECT_TRUE(effects->writes.empty());
  EXPECT_EQ(refusal(*effects, second), ErrorCode::StoreFull);
  core_->effects_committed(effects->expected);
}

TEST_F(StoreFailure, StillAnswersWhatIsStored) {
  submit(kWorker, "a");
  settle();
  fill_store();
  submit(kWorker, "b");
  settle();
  const RequestId again = submit(kWorker, "a");
  EXPECT_TRUE(is_accepted(settle(), again));
}

TEST_F(StoreFailure, OwnsNoFrameUntilItsResultIsStored) {
  const SessionRef session = open(kWorker);
  submit(kWorker, "a");
  settle();
  fill_store();
  deliver_result(session, "a");
  EXPECT_TRUE(settle().owns.empty());
  EXPECT_EQ(state("a"), CommandState::Sent) << "an outcome that may be lost is not shown";
  pass(seconds{60});
  EXPECT_TRUE(settle().owns.empty()) << "tried again, in vain";
  make_room();
  pass(seconds{60});
  const Effects effects = settle();
  ASSERT_EQ(effects.owns.size(), 1U);
  EXPECT_EQ(effects.owns[0].next, 1U);
  EXPECT_EQ(events<Finished>(effects).size(), 1U);
  EXPECT_EQ(state("a"), CommandState::Done);
  EXPECT_FALSE(core_->store_health().is_failing);
}

TEST_F(StoreFailure, RecoversByItselfEvenWhenItOwesNothing) {
  fill_store();
  submit(kWorker, "a");
  settle();
  make_room();
  ASSERT_TRUE(core_->poll_timeout().has_value());
  EXPECT_EQ(*core_->poll_timeout(), now_.steady + options_.store_retry_first);
  pass(options_.store_retry_first);
  settle();
  EXPECT_FALSE(core_->store_health().is_failing);
  const RequestId again = submit(kWorker, "a");
  EXPECT_TRUE(is_accepted(settle(), again));
  EXPECT_EQ(rows("command/"), 1U);
}

TEST_F(StoreFailure, IsTriedAgainEverMoreSlowlyUpToACap) {
  options_.lost_after = seconds{3600};  // so that nothing else is due
  restart();
  const SessionRef session = open(kWorker);
  settle();
  fill_store();
  deliver(session, {.type = "biz.event", .id = "e", .payload = "{}"});
  settle();
  Duration before{};
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(core_->poll_timeout().has_value());
    const Duration delay = *core_->poll_timeout() - now_.steady;
    EXPECT_GE(delay, before);
    EXPECT_LE(delay, options_.store_retry_cap);
    before = delay;
    pass(delay);
    settle();
  }
  EXPECT_EQ(before, options_.store_retry_cap);
  EXPECT_EQ(core_->store_health().failures, 11U);
}

TEST_F(StoreFailure, LetsASubmissionWaitWhileTheStoreIsBeingTried) {
  fill_store();
  submit(kWorker, "a");
  settle();
  make_room();
  pass(options_.store_retry_first);
  const RequestId waiting = submit(kWorker, "b");
  EXPECT_TRUE(is_accepted(settle(), waiting));
}

TEST_F(StoreFailure, RefusesAlsoWhatCameDuringTheCommitThatFailed) {
  submit(kWorker, "a");
  const auto effects = core_->poll_effects();
  ASSERT_TRUE(effects.has_value());
  const RequestId repeated = submit(kWorker, "a");
  const RequestId later = submit(kWorker, "b");
  core_->effects_failed({ErrorCode::StoreFailed, Blame::Local, "no disk"}, now_);
  const Effects after = settle();
  EXPECT_EQ(after.replies.size(), 3U);
  EXPECT_EQ(refusal(after, repeated), ErrorCode::StoreFailed);
  EXPECT_EQ(refusal(after, later), ErrorCode::StoreFailed);
  EXPECT_EQ(core_->outbox().size(), 0U);
}

TEST_F(StoreFailure, SendsAgainWhatTheFailedBatchWouldHaveSent) {
  submit(kWorker, "a");
  settle();
  const SessionRef session = open(kWorker);
  submit(kWorker, "b");
  const auto effects = core_->poll_effects();
  ASSERT_EQ(sent_ids(*effects), (Ids{"a", "b"}));
  core_->effects_failed({ErrorCode::StoreFull, Blame::Local, "full"}, now_);
  const Effects after = settle();
  EXPECT_EQ(sent_ids(after), Ids{"a"}) << "it is stored, so it may go; the other is no more";
  EXPECT_EQ(after.sends[0].session, session);
}

TEST_F(StoreFailure, DoesNotStopWhatNeedsNoStore) {
  const SessionRef session = open(kWorker);
  settle();
  fill_store();
  submit(kWorker, "a");
  const RequestId reset = ask<ResetWorker>(kWorker, std::string{"anew"});
  const RequestId drain = ask<DrainWorker>(kWorker, std::string{"go"}, Duration{seconds{5}});
  const Effects effects = settle();
  ASSERT_EQ(effects.session_commands.size(), 1U);
  EXPECT_EQ(std::get<ResetSession>(effects.session_commands[0]).session, session);
  EXPECT_TRUE(std::holds_alternative<Done>(reply_to(effects, reset)->outcome));
  EXPECT_EQ(refusal(effects, drain), ErrorCode::StoreFull);
  EXPECT_EQ(core_->fleet().find(kWorker)->state, WorkerState::Ready)
      << "a drain that was refused has not begun";
}

TEST_F(StoreFailure, ByAnotherWriterIsForGood) {
  open(kWorker);
  settle();
  image_->version = Version{77};
  const RequestId request = submit(kWorker, "a");
  EXPECT_EQ(refusal(settle(), request), ErrorCode::StoreStale);
  EXPECT_TRUE(core_->store_health().is_fenced);
  pass(seconds{3600});
  const RequestId later = submit(kWorker, "b");
  EXPECT_EQ(refusal(settle(), later), ErrorCode::StoreStale);
}

}  // namespace
}  // namespace windlass
