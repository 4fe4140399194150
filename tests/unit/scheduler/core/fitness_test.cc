// Workers that are short of something or not well: what they get, and when they get the rest.
#include <functional>
#include <tuple>

#include "tests/unit/scheduler/core/placement_fixture.h"

namespace windlass {
namespace {

// ---- memory and disk

TEST_F(Placement, GivesAWorkerThatIsShortNothingNewAndKeepsWhatWaits) {
  const SessionRef session = open(kWorker);
  register_as(session, 1);
  submit(kWorker, "a");
  submit(kWorker, "b");
  settle();
  report(session, true, true);
  deliver_result(session, "a");
  const RequestId accepted = submit(kWorker, "c");
  const Effects effects = settle();
  EXPECT_TRUE(sent_ids(effects).empty());
  EXPECT_TRUE(is_accepted(effects, accepted)) << "a shortage ends by itself";
  EXPECT_EQ(events<ShortageChanged>(effects).size(), 1U);
  EXPECT_TRUE(effects.session_commands.empty()) << "its session stays as it is";
  EXPECT_EQ(state("b"), CommandState::Waiting);
  report(session, true, true);
  EXPECT_TRUE(events<ShortageChanged>(settle()).empty()) << "said once";
  report(session, true, false);
  const Effects over = settle();
  EXPECT_EQ(sent_ids(over), Ids{"b"}) << "one at a time";
  ASSERT_EQ(events<ShortageChanged>(over).size(), 1U);
  EXPECT_EQ(events<ShortageChanged>(over)[0].of, "");
}

// ---- workers that are not well

TEST_F(Placement, KeepsWorkForANamedWorkerUntilItIsWell) {
  const SessionRef session = open(kWorker);
  register_as(session, 4);
  settle();
  const std::vector<std::tuple<std::string, std::function<void()>, std::function<void()>>> cases{
      {"unhealthy", [&] { report(session, false, false); }, [&] { report(session, true, false); }},
      {"degraded", [&] { say(session, LivenessChanged{Liveness::Degraded}); },
       [&] { say(session, LivenessChanged{Liveness::Healthy}); }},
  };
  for (const auto& [name, begin, end] : cases) {
    begin();
    const RequestId request = submit(kWorker, name);
    const Effects effects = settle();
    EXPECT_TRUE(is_accepted(effects, request)) << "it may be well soon";
    EXPECT_TRUE(sent_ids(effects).empty()) << name;
    EXPECT_EQ(state(name), CommandState::Waiting);
    end();
    EXPECT_EQ(sent_ids(settle()), Ids{name});
  }
  say(session, LivenessChanged{Liveness::Warn});
  submit(kWorker, "late");
  EXPECT_EQ(sent_ids(settle()), Ids{"late"}) << "one heartbeat is no reason";
}

TEST_F(Placement, GivesUpWorkWhoseNamedWorkerIsNotWellInTime) {
  const SessionRef session = open(kWorker);
  report(session, false, false);
  submit(kWorker, "a");
  for (Duration done{}; done < options_.command_timeout; done += seconds{30}) {
    report(session, false, false);
    settle();
    pass(seconds{30});
  }
  settle();
  ASSERT_NE(failure_of("a"), nullptr);
  EXPECT_EQ(failure_of("a")->code, ErrorCode::Timeout);
  EXPECT_FALSE(failure_of("a")->may_have_run);
}

TEST_F(Placement, LetsOrdersPassAWorkerThatIsNotWell) {
  start_app();
  const SessionRef session = sessions_[kWorker];
  say(session, LivenessChanged{Liveness::Degraded});
  report(session, false, false);
  submit(kWorker, "work");
  unassign("u");
  Ids sent = sent_ids(settle());
  EXPECT_NE(std::ranges::find(sent, "u.1"), sent.end()) << "a release is not work";
  EXPECT_EQ(std::ranges::find(sent, "work"), sent.end());
  core_->handle(SubmitCommand{.request = RequestId{++next_request_},
                              .worker = kWorker,
                              .id = "again",
                              .type = std::string{kResumeType},
                              .payload = "{}",
                              .timeout = std::nullopt},
                now_);
  EXPECT_EQ(sent_ids(settle()), Ids{"again"}) << "nor is what mends it, whoever sends it";
}

TEST_F(Placement, GivesARuntimeItsOrdersHoweverItIs) {
  const SessionRef session = open_runtime();
  settle();
  report(session, false, false);
  say(session, LivenessChanged{Liveness::Degraded});
  core_->handle(SubmitCommand{.request = RequestId{++next_request_},
                              .worker = worker_key("r1"),
                              .id = "call",
                              .type = std::string{kInvokeType},
                              .payload = "{}",
                              .timeout = std::nullopt},
                now_);
  EXPECT_EQ(sent_ids(settle()), Ids{"call"}) << "what it can take is its own affair";
}

}  // namespace
}  // namespace windlass
