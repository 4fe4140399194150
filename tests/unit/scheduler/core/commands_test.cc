#include "tests/unit/scheduler/core/core_fixture.h"

namespace windlass {
namespace {

using Ids = std::vector<std::string>;

class Commands : public CoreTest {};

TEST_F(Commands, AreInTheStoreBeforeTheyAreAcceptedOrSent) {
  open(kWorker);
  settle();
  const RequestId request = submit(kWorker, "a", R"({"text":"hi"})");
  const auto effects = core_->poll_effects();
  ASSERT_TRUE(effects.has_value());
  ASSERT_EQ(effects->writes.size(), 1U);
  EXPECT_EQ(effects->writes[0].key, "command/acme/a");
  EXPECT_TRUE(is_accepted(*effects, request)) << "in the same batch, to be said after the commit";
  ASSERT_EQ(sent_ids(*effects), Ids{"a"});
  EXPECT_EQ(effects->sends[0].message.payload(), R"({"text":"hi"})");
  EXPECT_EQ(effects->sends[0].message.type(), "biz.echo");
  EXPECT_EQ(state("a"), std::nullopt) << "not durable, so nobody sees it";
  core_->effects_committed(Version{effects->expected.value() + 1});
  EXPECT_EQ(state("a"), CommandState::Sent);
}

TEST_F(Commands, ThatComeDuringACommitFormTheNextBatch) {
  open(kWorker);
  settle();
  submit(kWorker, "a");
  const auto first = core_->poll_effects();
  ASSERT_TRUE(first.has_value());
  submit(kWorker, "b");
  submit(kWorker, "c");
  EXPECT_FALSE(core_->poll_effects().has_value()) << "one batch at a time";
  core_->effects_committed(*MemoryStore{image_}.commit(first->writes, first->expected));
  const auto second = core_->poll_effects();
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->writes.size(), 2U);
  EXPECT_EQ(sent_ids(*second), (Ids{"b", "c"}));
}

TEST_F(Commands, HaveTheirResultStoredBeforeItsFrameIsOwned) {
  const SessionRef session = open(kWorker);
  submit(kWorker, "a");
  settle();
  deliver_result(session, "a", R"({"answer":42})");
  const auto effects = core_->poll_effects();
  ASSERT_TRUE(effects.has_value());
  ASSERT_EQ(effects->writes.size(), 1U);
  EXPECT_NE(effects->writes[0].value->find("42"), std::string::npos);
  ASSERT_EQ(effects->owns.size(), 1U);
  EXPECT_EQ(effects->owns[0].next, 1U);
  EXPECT_EQ(state("a"), CommandState::Sent) << "the outcome does not show before it is durable";
  EXPECT_EQ(events<Finished>(*effects).size(), 1U);
  core_->effects_committed(*MemoryStore{image_}.commit(effects->writes, effects->expected));
  const auto view = core_->outbox().view(command_key("a"));
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->state, CommandState::Done);
  EXPECT_EQ(view->result->payload, R"({"answer":42})");
}

TEST_F(Commands, KeepTheAttachmentOfTheirResult) {
  const SessionRef session = open(kWorker);
  submit(kWorker, "a");
  settle();
  const std::string bytes{"\0\xff raw", 6};
  deliver(session, {.type = "biz.result",
                    .id = "r",
                    .payload = "{}",
                    .corr = "a",
                    .attachment = Attachment{"image/png", bytes}});
  settle();
  restart();
  const auto view = core_->outbox().view(command_key("a"));
  ASSERT_TRUE(view && view->result && view->result->attachment);
  EXPECT_EQ(view->result->attachment->bytes, bytes);
  EXPECT_EQ(view->result->attachment->type, "image/png");
}

TEST_F(Commands, OfOneIdAndBodyAreOneCommand) {
  submit(kWorker, "a", R"({"n":1})");
  settle();
  const RequestId again = submit(kWorker, "a", R"({"n":1})");
  const Effects effects = settle();
  const Reply* const reply = reply_to(effects, again);
  ASSERT_NE(reply, nullptr);
  EXPECT_TRUE(std::get<CommandAccepted>(reply->outcome).is_repeated);
  EXPECT_EQ(rows("command/"), 1U);
}

TEST_F(Commands, OfOneIdAndAnotherBodyAreRefused) {
  submit(kWorker, "a", R"({"n":1})");
  settle();
  const RequestId payload = submit(kWorker, "a", R"({"n":2})");
  const RequestId worker = submit(worker_key("w2"), "a", R"({"n":1})");
  const RequestId other_tenant = submit(worker_key("w1", "other"), "a", R"({"n":2})");
  const Effects effects = settle();
  EXPECT_EQ(refusal(effects, payload), ErrorCode::ResultDuplicate);
  EXPECT_EQ(refusal(effects, worker), ErrorCode::ResultDuplicate);
  EXPECT_TRUE(is_accepted(effects, other_tenant)) << "ids mean nothing outside their tenant";
}

TEST_F(Commands, WithoutAnIdGetOneOfTheirOwn) {
  const RequestId first = submit(kWorker, "");
  const RequestId second = submit(kWorker, "");
  const Effects effects = settle();
  ASSERT_TRUE(is_accepted(effects, first) && is_accepted(effects, second));
  const std::string id = std::get<CommandAccepted>(reply_to(effects, first)->outcome).key.id;
  EXPECT_EQ(id.size(), 34U);
  EXPECT_NE(id, std::get<CommandAccepted>(reply_to(effects, second)->outcome).key.id);
}

TEST_F(Commands, ForAWorkerThatIsNotHereWaitForIt) {
  submit(kWorker, "a");
  EXPECT_TRUE(sent_ids(settle()).empty());
  EXPECT_EQ(state("a"), CommandState::Waiting);
  open(kWorker);
  EXPECT_EQ(sent_ids(settle()), Ids{"a"});
}

//= WRK-4
TEST_F(Commands, GoAgainInOrderWhenTheirSessionEnded) {
  const SessionRef session = open(kWorker);
  for (const char* id : {"a", "b", "c"}) submit(kWorker, id);
  EXPECT_EQ(sent_ids(settle()), (Ids{"a", "b", "c"}));
  deliver_result(session, "b");
  settle();
  end(session);
  submit(kWorker, "d");
  EXPECT_TRUE(sent_ids(settle()).empty());
  open(kWorker);
  const Effects effects = settle();
  EXPECT_EQ(sent_ids(effects), (Ids{"a", "c", "d"}));
  const auto dispatched = events<Dispatched>(effects);
  ASSERT_EQ(dispatched.size(), 3U);
  EXPECT_EQ(dispatched[0].cause, DispatchCause::SessionEnded);
  EXPECT_EQ(dispatched[2].cause, DispatchCause::First);
}

TEST_F(Commands, AreNotSentTwiceInOneSession) {
  const SessionRef session = open(kWorker);
  submit(kWorker, "a");
  settle();
  say(session, Detached{});
  say(session, Established{true, 1});
  EXPECT_TRUE(sent_ids(settle()).empty()) << "a resumed session sends again by itself";
}

TEST_F(Commands, AreBoundedInFlightPerWorker) {
  options_.in_flight_per_worker_max = 2;
  restart();
  const SessionRef session = open(kWorker);
  for (const char* id : {"a", "b", "c", "d"}) submit(kWorker, id);
  EXPECT_EQ(sent_ids(settle()), (Ids{"a", "b"}));
  EXPECT_EQ(core_->outbox().waiting(kWorker), 2U);
  deliver_result(session, "b");
  EXPECT_EQ(sent_ids(settle()), Ids{"c"});
}

TEST_F(Commands, AreBoundedPerTenantByCountAndBytes) {
  options_.pending_per_tenant_max = 2;
  options_.pending_bytes_per_tenant_max = 5000;
  restart();
  const RequestId large = submit(kWorker, "large", R"({"x":")" + std::string(5000, 'x') + R"("})");
  submit(kWorker, "a");
  submit(kWorker, "b");
  const RequestId third = submit(kWorker, "c");
  const RequestId other = submit(worker_key("w1", "other"), "c");
  const Effects effects = settle();
  EXPECT_EQ(refusal(effects, large), ErrorCode::LimitCapacity);
  EXPECT_EQ(refusal(effects, third), ErrorCode::LimitCapacity);
  EXPECT_TRUE(is_accepted(effects, other)) << "one tenant does not use up another's room";
  const SessionRef session = open(kWorker);
  settle();
  deliver_result(session, "a");
  settle();
  const RequestId again = submit(kWorker, "c");
  EXPECT_TRUE(is_accepted(settle(), again));
}

TEST_F(Commands, ExpireAndALateResultChangesNothing) {
  const SessionRef session = open(kWorker);
  submit(kWorker, "a", "{}", seconds{5});
  settle();
  EXPECT_EQ(core_->poll_timeout(), now_.steady + seconds{5});
  pass(seconds{4});
  EXPECT_FALSE(core_->poll_effects().has_value());
  pass(seconds{1});
  const Effects expired = settle();
  ASSERT_EQ(events<Finished>(expired).size(), 1U);
  EXPECT_EQ(events<Finished>(expired)[0].failure, ErrorCode::Timeout);
  EXPECT_EQ(state("a"), CommandState::Failed);
  deliver_result(session, "a");
  const Effects late = settle();
  EXPECT_EQ(late.owns.size(), 1U) << "the frame is taken";
  EXPECT_EQ(late.writes.size(), 0U);
  ASSERT_EQ(events<FrameIgnored>(late).size(), 1U);
  EXPECT_EQ(events<FrameIgnored>(late)[0].why, Ignored::LateResult);
  EXPECT_EQ(state("a"), CommandState::Failed);
}

TEST_F(Commands, DoNotExpireWhenTheWallClockJumps) {
  submit(kWorker, "a", "{}", seconds{5});
  settle();
  now_.wall += seconds{1'000'000};
  pass(seconds{1});
  settle();
  EXPECT_EQ(state("a"), CommandState::Waiting);
}

TEST_F(Commands, TakeTheFirstResultOnly) {
  const SessionRef session = open(kWorker);
  submit(kWorker, "a");
  settle();
  deliver_result(session, "a", R"({"n":1})");
  deliver(session, {.type = "biz.result", .id = "r2", .payload = R"({"n":2})", .corr = "a"});
  const Effects effects = settle();
  //= WRK-2
  EXPECT_EQ(effects.owns.back().next, 2U);
  ASSERT_EQ(events<FrameIgnored>(effects).size(), 1U);
  EXPECT_EQ(events<FrameIgnored>(effects)[0].why, Ignored::DuplicateResult);
  EXPECT_EQ(core_->outbox().view(command_key("a"))->result->payload, R"({"n":1})");
  EXPECT_EQ(core_->fleet().find(kWorker)->counters.duplicates, 1U);
}

TEST_F(Commands, AreNotAnsweredByAnotherWorkerOrTenant) {
  open(kWorker);
  submit(kWorker, "a");
  const SessionRef neighbour = open(worker_key("w2"));
  const SessionRef foreign = open(worker_key("w1", "other"));
  settle();
  deliver_result(neighbour, "a", R"({"forged":1})");
  deliver_result(foreign, "a", R"({"forged":2})");
  const Effects effects = settle();
  EXPECT_EQ(state("a"), CommandState::Sent);
  //= WRK-2
  EXPECT_EQ(rows("message/"), 0U) << "a result is no message, whoever sends it";
  ASSERT_EQ(events<FrameIgnored>(effects).size(), 2U);
  EXPECT_EQ(events<FrameIgnored>(effects)[0].why, Ignored::ForgottenResult);
}

TEST_F(Commands, OfTwoTenantsDoNotMeetWhateverTheirNames) {
  submit(worker_key("w", "a/b"), "c", R"({"n":1})");
  submit(worker_key("w", "a"), "b/c", R"({"n":2})");
  submit(worker_key("w", "a%2fb"), "c", R"({"n":3})");
  settle();
  EXPECT_EQ(rows("command/"), 3U);
  restart();
  EXPECT_EQ(core_->outbox().view(command_key("c", "a/b"))->record.payload, R"({"n":1})");
  EXPECT_EQ(core_->outbox().view(command_key("b/c", "a"))->record.payload, R"({"n":2})");
  EXPECT_EQ(core_->outbox().view(command_key("c", "a%2fb"))->record.payload, R"({"n":3})");
}

TEST_F(Commands, ThatAreFinishedAreKeptByCount) {
  options_.finished_per_tenant_max = 3;
  restart();
  const SessionRef session = open(kWorker);
  const SessionRef other = open(worker_key("w1", "other"));
  submit(worker_key("w1", "other"), "theirs");
  settle();
  deliver_result(other, "theirs");
  for (const char* id : {"a", "b", "c", "d", "e"}) {
    submit(kWorker, id);
    settle();
    deliver_result(session, id);
    settle();
  }
  EXPECT_EQ(rows("command/acme/"), 3U);
  EXPECT_EQ(state("b"), std::nullopt);
  EXPECT_EQ(state("c"), CommandState::Done);
  EXPECT_EQ(state("theirs", "other"), CommandState::Done) << "tenants forget for themselves";
  EXPECT_EQ(core_->outbox().counters().forgotten, 2U);
}

TEST_F(Commands, ThatAreFinishedAreKeptByBytes) {
  options_.finished_bytes_per_tenant_max = 20'000;
  restart();
  const SessionRef session = open(kWorker);
  for (int i = 0; i < 10; ++i) {
    const std::string id = std::to_string(i);
    submit(kWorker, id);
    settle();
    deliver_result(session, id, R"({"x":")" + std::string(5000, 'x') + R"("})");
    settle();
  }
  EXPECT_EQ(rows("command/"), 3U);
  EXPECT_EQ(state("9"), CommandState::Done);
}

TEST_F(Commands, ThatAreFinishedAreKeptForATime) {
  options_.finished_age_max = seconds{60};
  restart();
  const SessionRef session = open(kWorker);
  submit(kWorker, "a");
  settle();
  deliver_result(session, "a");
  settle();
  pass(seconds{30});
  restart();
  EXPECT_EQ(core_->poll_timeout(), now_.steady + seconds{30}) << "a restart does not begin anew";
  pass(seconds{29});
  settle();
  EXPECT_EQ(state("a"), CommandState::Done);
  pass(seconds{1});
  settle();
  EXPECT_EQ(rows("command/"), 0U);
}

// The old row is erased and the new one written by different batches; the first must not make the second look
// stored.
TEST_F(Commands, UnderAnIdThatIsJustBeingForgottenAreNew) {
  options_.finished_age_max = seconds{60};
  restart();
  const SessionRef session = open(kWorker);
  submit(kWorker, "a");
  settle();
  deliver_result(session, "a");
  settle();
  pass(seconds{60});
  const auto erasing = core_->poll_effects();
  ASSERT_TRUE(erasing.has_value());
  const RequestId again = submit(kWorker, "a");
  core_->effects_committed(*MemoryStore{image_}.commit(erasing->writes, erasing->expected));
  EXPECT_EQ(state("a"), std::nullopt);
  const Effects effects = settle();
  EXPECT_TRUE(is_accepted(effects, again));
  EXPECT_EQ(sent_ids(effects), Ids{"a"});
  EXPECT_EQ(rows("command/"), 1U);
}

TEST_F(Commands, ThatNoSessionTakesFailOrWaitForTheNext) {
  const SessionRef session = open(kWorker);
  submit(kWorker, "large");
  submit(kWorker, "b");
  settle();
  core_->handle(SendRefused{session, command_key("large"), {ErrorCode::LimitFrame, Blame::Peer, "too large"}},
                now_);
  core_->handle(SendRefused{session, command_key("b"), {ErrorCode::SessionDraining, Blame::Peer, "draining"}},
                now_);
  EXPECT_TRUE(sent_ids(settle()).empty());
  EXPECT_EQ(state("large"), CommandState::Failed);
  EXPECT_EQ(state("b"), CommandState::Waiting);
  EXPECT_EQ(core_->fleet().find(kWorker)->state, WorkerState::Draining);
  end(session, "");
  open(kWorker);
  EXPECT_EQ(sent_ids(settle()), Ids{"b"});
}

TEST_F(Commands, AreListedNewestFirstByTenantWorkerAndStatePageByPage) {
  const SessionRef session = open(kWorker);
  for (int i = 0; i < 5; ++i) submit(kWorker, "k" + std::to_string(i));
  submit(worker_key("w2"), "x");
  submit(worker_key("w1", "other"), "y");
  settle();
  deliver_result(session, "k3");
  settle();
  const auto list = [this](const CommandFilter& filter) {
    Ids ids;
    core_->outbox().for_each(filter, [&](const CommandView& view) { ids.push_back(view.record.key.id); });
    return ids;
  };
  CommandFilter filter;
  filter.tenant = TenantId{"acme"};
  EXPECT_EQ(list(filter), (Ids{"x", "k4", "k3", "k2", "k1", "k0"}));
  filter.worker = InstanceId{"w1"};
  filter.state = CommandState::Sent;
  EXPECT_EQ(list(filter), (Ids{"k4", "k2", "k1", "k0"}));
  filter.count_max = 2;
  EXPECT_EQ(list(filter), (Ids{"k4", "k2"}));
  filter.before_number = core_->outbox().view(command_key("k2"))->record.number;
  EXPECT_EQ(list(filter), (Ids{"k1", "k0"}));
}

}  // namespace
}  // namespace windlass
