// Drained workers that are started again: by an operator, or because the memory is back for want of which
// their runtime drained them.
#include "tests/unit/scheduler/core/apps_fixture.h"

namespace windlass {
namespace {

class ResumesTest : public AppsTest {
 protected:
  static std::string drained(std::string_view id, bool is_for_memory = true,
                             std::string_view runtime = "r1") {
    return R"({"worker_id":")" + std::string{id} + R"(.1","language":"node","runtime":")" +
           std::string{runtime} + R"(","state":"drained")" +
           (is_for_memory ? R"(,"drained_for":"memory"})" : "}");
  }
  static std::string pressure(std::string_view level) {
    return R"({"url":"wss://r1","health":"Healthy","memory_pressure":")" + std::string{level} +
           R"(","applications":[],"workers":[]})";
  }

  void say_pressure(std::string_view level) { runtime_status(*runtime_, pressure(level)); }

  SessionRef open_drained(const WorkerKey& worker, bool is_for_memory = true,
                          std::string_view runtime = "r1") {
    const SessionRef session = open(worker);
    heard_.push_back(session);
    status(session, drained(worker.instance.value(), is_for_memory, runtime));
    return session;
  }

  // Time in which everybody is heard; the workers that were told to resume.
  std::vector<SessionRef> pass_and_take(Duration time) {
    std::vector<SessionRef> told = take();
    for (Duration done{}; done < time; done += std::min<Duration>(time - done, seconds{10})) {
      pass(std::min<Duration>(time - done, seconds{10}));
      say(*runtime_, LoadReported{});
      for (const SessionRef session : heard_) say(session, LoadReported{});
      for (const SessionRef each : take()) told.push_back(each);
    }
    return told;
  }

  std::vector<SessionRef> take() {
    std::vector<SessionRef> told;
    for (const Send& each : settle().sends) {
      if (each.message.type() != kResumeType) continue;
      told.push_back(each.session);
      command_ = std::string{each.message.id()};
    }
    return told;
  }

  std::optional<Error> resume(const WorkerKey& worker) {
    const RequestId request{++next_request_};
    core_->handle(ResumeWorker{request, worker}, now_);
    effects_ = settle();
    const Reply* const reply = reply_to(effects_, request);
    if (reply == nullptr) return Error{ErrorCode::Internal, Blame::Local, "no reply"};
    const auto* const error = std::get_if<Error>(&reply->outcome);
    return error == nullptr ? std::nullopt : std::optional{*error};
  }

  std::vector<SessionRef> heard_;
  std::string command_;  // the last that was sent
  Effects effects_;
};

TEST_F(ResumesTest, AWorkerIsResumedOnceItsRuntimesMemoryHasBeenNormalForAWhile) {
  open_runtime(pressure("critical"));
  const SessionRef worker = open_drained(kWorker);
  EXPECT_TRUE(pass_and_take(options_.resume_after * 2).empty()) << "it is short of memory";
  say_pressure("elevated");
  EXPECT_TRUE(pass_and_take(options_.resume_after * 2).empty()) << "it would be drained again at once";
  say_pressure("normal");
  EXPECT_TRUE(pass_and_take(options_.resume_after - seconds{1}).empty());
  EXPECT_EQ(pass_and_take(seconds{1}), std::vector{worker});
  EXPECT_TRUE(pass_and_take(options_.resume_after * 3).empty()) << "it was told";
}

TEST_F(ResumesTest, MemoryThatComesAndGoesIsNotNormal) {
  open_runtime(pressure("normal"));
  open_drained(kWorker);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(pass_and_take(options_.resume_after * 2 / 3).empty());
    say_pressure("elevated");
    say_pressure("normal");
  }
  EXPECT_EQ(pass_and_take(options_.resume_after).size(), 1U);
}

TEST_F(ResumesTest, WorkersOfARuntimeAreResumedOneAfterAnother) {
  open_runtime(pressure("normal"));
  const SessionRef first = open_drained(kWorker);
  const SessionRef second = open_drained(kOther);
  ASSERT_EQ(pass_and_take(options_.resume_after), std::vector{first});
  status(first, R"({"worker_id":"w1.2","language":"node","runtime":"r1","state":"starting"})");
  EXPECT_TRUE(pass_and_take(options_.resume_after * 2).empty()) << "the first is not up yet";
  deliver_result(first, command_);
  status(first, R"({"worker_id":"w1.2","language":"node","runtime":"r1","state":"placeholder"})");
  EXPECT_EQ(pass_and_take(seconds{1}), std::vector{second});
}

TEST_F(ResumesTest, TheNextWaitsForAsLongAsTheFirst) {
  open_runtime(pressure("normal"));
  const SessionRef first = open_drained(kWorker);
  const SessionRef second = open_drained(kOther);
  ASSERT_EQ(pass_and_take(options_.resume_after), std::vector{first});
  deliver_result(first, command_);
  status(first, R"({"worker_id":"w1.2","language":"node","runtime":"r1","state":"placeholder"})");
  EXPECT_TRUE(pass_and_take(options_.resume_after - seconds{1}).empty());
  say_pressure("critical");
  EXPECT_TRUE(pass_and_take(options_.resume_after).empty()) << "the first was one too many";
  say_pressure("normal");
  EXPECT_EQ(pass_and_take(options_.resume_after), std::vector{second});
}

TEST_F(ResumesTest, WhoHasAPlaceComesFirst) {
  const SessionRef worker = begin_ready();
  heard_.push_back(worker);
  const WorkerKey before = worker_key("a0");  // in order of names
  open_drained(before);
  say_pressure("normal");
  status(worker, R"({"worker_id":"w1.1","language":"node","runtime":"r1","state":"drained",)"
                 R"("drained_for":"memory","application":{"application_id":"hello",)"
                 R"("metadata_version":"m","code_version":"v1"}})");
  EXPECT_EQ(pass_and_take(options_.resume_after), std::vector{worker});
}

// Its runtime was short of memory, drained it, was killed for it, and comes back under another name.
TEST_F(ResumesTest, AWorkerWhoseRuntimeIsLostMeanwhileGoesToAnother) {
  const SessionRef worker = begin_ready();
  heard_.push_back(worker);
  say_pressure("critical");
  status(worker, R"({"worker_id":"w1.1","language":"node","runtime":"r1","state":"drained",)"
                 R"("drained_for":"memory","application":{"application_id":"hello",)"
                 R"("metadata_version":"m","code_version":"v1"}})");
  end(*runtime_);
  const SessionRef next =
      open_runtime(R"({"url":"wss://r2","health":"Healthy","applications":[],"workers":[]})", "r2");
  runtime_ = next;
  settle();
  bool was_told = false;
  for (Duration done{}; done < options_.lost_after * 2; done += seconds{10}) {
    pass(seconds{10});
    say(next, LoadReported{});
    say(worker, LoadReported{});
    for (const Send& each : settle().sends) {
      was_told |= each.session == worker && each.message.type() == kSpecializeType;
    }
  }
  EXPECT_TRUE(was_told);
  EXPECT_EQ(core_->apps().assignment_of(kWorker)->runtime, "r2");
}

TEST_F(ResumesTest, AWorkerThatSomebodyDrainedLeavesItsPlaceAlsoIfItsRuntimeIsLost) {
  const SessionRef worker = begin_ready();
  status(worker, R"({"worker_id":"w1.1","language":"node","runtime":"r1","state":"drained",)"
                 R"("application":{"application_id":"hello","metadata_version":"m","code_version":"v1"}})");
  end(*runtime_);
  const SessionRef next =
      open_runtime(R"({"url":"wss://r2","health":"Healthy","applications":[],"workers":[]})", "r2");
  settle();
  SessionRef other{};
  for (Duration done{}; done < options_.lost_after * 2; done += seconds{10}) {
    pass(seconds{10});
    if (done == Duration{}) other = open_placeholder(kOther);
    for (const SessionRef each : {next, worker, other}) say(each, LoadReported{});
    settle();
  }
  EXPECT_EQ(assigned(kOther), AssignmentState::Pending);
  EXPECT_EQ(assigned(kWorker), AssignmentState::Lost);
}

TEST_F(ResumesTest, IsTriedAgainWhenThereWasNoRoomForTheOrder) {
  options_.pending_per_tenant_max = 1;
  restart();
  open_runtime(pressure("normal"));
  const SessionRef worker = open_drained(kWorker);
  submit(worker_key("w9"), "full", "{}", options_.resume_after + seconds{10});
  settle();
  EXPECT_TRUE(pass_and_take(options_.resume_after).empty());
  ASSERT_TRUE(core_->poll_timeout());
  EXPECT_LE(*core_->poll_timeout(), now_.steady + options_.assignment_retry);
  pass(seconds{11});
  pass(options_.assignment_retry);
  EXPECT_EQ(take(), std::vector{worker});
}

TEST_F(ResumesTest, WhatSomebodyOrderedStaysDrained) {
  open_runtime(pressure("normal"));
  open_drained(kWorker, false);
  const SessionRef leaving = open_drained(kOther);
  core_->handle(DrainWorker{RequestId{++next_request_}, kOther, "new disk", seconds{300}}, now_);
  EXPECT_TRUE(pass_and_take(options_.resume_after * 3).empty());
  say(leaving, Ended{"", "", Blame::Peer, {}, {}});
  EXPECT_TRUE(pass_and_take(options_.resume_after * 3).empty());
}

TEST_F(ResumesTest, ARuntimeThatIsAwayOrDoesNotSayIsNotTakenForNormal) {
  open_runtime(kRuntimeStatus);
  open_drained(kWorker);
  EXPECT_TRUE(pass_and_take(options_.resume_after * 3).empty()) << "it is older than this";
  say_pressure("normal");
  say(*runtime_, Detached{});
  pass(options_.resume_after);
  say(*runtime_, Established{true, 0});
  say_pressure("normal");
  EXPECT_TRUE(pass_and_take(options_.resume_after - seconds{1}).empty())
      << "it may have been short meanwhile";
  EXPECT_EQ(pass_and_take(seconds{1}).size(), 1U);
}

TEST_F(ResumesTest, AnAgentThatKnowsOnlyTheAddressOfItsRuntimeIsResumedToo) {
  open_runtime(pressure("normal"));
  open_drained(kWorker, true, "wss://r1");
  EXPECT_EQ(pass_and_take(options_.resume_after).size(), 1U);
}

TEST_F(ResumesTest, AnOperatorResumesWhoeverIsDrained) {
  open_runtime(pressure("critical"));
  const SessionRef worker = open_drained(kWorker, false);
  EXPECT_FALSE(resume(kWorker));
  ASSERT_EQ(effects_.sends.size(), 1U);
  EXPECT_EQ(effects_.sends[0].session, worker);
  EXPECT_EQ(effects_.sends[0].message.type(), kResumeType);
  EXPECT_FALSE(resume(kWorker)) << "said twice";
  EXPECT_TRUE(effects_.sends.empty()) << "it is on its way";
}

TEST_F(ResumesTest, WhoIsNotDrainedCannotBeResumed) {
  const SessionRef worker = begin();
  const auto refused = resume(kWorker);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, ErrorCode::ProtoState);
  EXPECT_EQ(refused->reason, "worker 'w1' is not drained: the state of its language worker is 'placeholder'");
  EXPECT_EQ(resume(kOther)->code, ErrorCode::SessionUnknown);
  status(worker, drained("w1"));
  say(worker, DrainRequested{"own will", seconds{5}});
  EXPECT_EQ(resume(kWorker)->code, ErrorCode::SessionDraining);
}

}  // namespace
}  // namespace windlass
