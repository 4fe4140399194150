// Invocations by operators: which runtime gets them when the one that was chosen is lost.
#include "tests/unit/scheduler/core/apps_fixture.h"

namespace windlass {
namespace {

// Two runtimes that serve the application, and an invocation for the first.
class Invocations : public AppsTest {
 protected:
  static constexpr std::string_view kServes =
      R"({"url":"wss://r1","health":"Healthy","applications":[{"application_id":"hello",)"
      R"("metadata_version":"m","functions":["f"],"ready":1,"workers":1}],"workers":[]})";

  RequestId invoke(std::string_view id, std::string_view runtime = "r1") {
    const RequestId request{++next_request_};
    core_->handle(SubmitCommand{.request = request,
                                .worker = worker_key(runtime),
                                .id = std::string{id},
                                .type = std::string{kInvokeType},
                                .payload = "{}",
                                .timeout = std::nullopt,
                                .target = {CommandTarget::Kind::Serving, "hello"}},
                  now_);
    return request;
  }
  std::optional<ErrorCode> failure_of(std::string_view id) const {
    const auto view = core_->outbox().view(command_key(id));
    return view && view->failure ? std::optional(view->failure->code) : std::nullopt;
  }
  // So long that the first runtime, of which nothing is heard, is lost.
  void lose_first(std::optional<SessionRef> other) {
    for (Duration done{}; done < options_.lost_after * 2; done += options_.lost_after / 3) {
      if (other) say(*other, LoadReported{});
      pass(options_.lost_after / 3);
    }
  }
  // The invocation "i" has no runtime: its own is lost, and the other has no room.
  SessionRef begin_without_runtime() {
    options_.in_flight_per_worker_max = 1;
    restart();
    deploy(app());
    const SessionRef first = open_runtime(kServes);
    const SessionRef other = open_runtime(kServes, "r2");
    settle();
    invoke("full", "r2");
    end(first);
    invoke("i");
    settle();
    lose_first(other);
    settle();
    return other;
  }
};

TEST_F(Invocations, ThatTheirRuntimeNeverGotGoToAnotherOnceItIsLost) {
  deploy(app());
  const SessionRef first = open_runtime(kServes);
  const SessionRef other = open_runtime(kServes, "r2");
  settle();
  end(first);
  invoke("i");
  EXPECT_TRUE(settle().sends.empty()) << "it may be back soon";
  lose_first(other);
  const Effects effects = settle();
  ASSERT_EQ(sent_ids(effects), std::vector<std::string>{"i"});
  EXPECT_EQ(effects.sends[0].session, other);
  deliver_result(other, "i");
  settle();
  EXPECT_EQ(state("i"), CommandState::Done);
  invoke("i");
  settle();
  EXPECT_EQ(state("i"), CommandState::Done) << "it is the same one again";
}

TEST_F(Invocations, ThatTheirRuntimeGotAreLostWithIt) {
  deploy(app());
  const SessionRef first = open_runtime(kServes);
  const SessionRef other = open_runtime(kServes, "r2");
  settle();
  invoke("i");
  ASSERT_EQ(settle().sends.size(), 1U);
  say(first, Detached{});
  lose_first(other);
  EXPECT_TRUE(settle().sends.empty());
  EXPECT_EQ(failure_of("i"), ErrorCode::WorkerLost);
}

TEST_F(Invocations, EndWithTheirRuntimeWhereNoOtherServes) {
  deploy(app());
  const SessionRef first = open_runtime(kServes);
  const SessionRef other = open_runtime(kRuntimeStatus, "r2");
  settle();
  end(first);
  invoke("i");
  settle();
  lose_first(other);
  settle();
  EXPECT_EQ(failure_of("i"), ErrorCode::WorkerLost);
}

// One without a runtime: the first was lost before it got it, and the other is full.
TEST_F(Invocations, WithoutARuntimeWaitAfterARestart) {
  begin_without_runtime();
  ASSERT_EQ(core_->outbox().view(command_key("i"))->record.worker.value(), "");
  restart();
  pass(seconds{1});
  settle();
  EXPECT_EQ(failure_of("i"), std::nullopt) << "nobody can have said yet what it serves";
  const SessionRef back = open_runtime(kServes, "r2");
  settle();
  deliver_result(back, "full");
  EXPECT_EQ(sent_ids(settle()), std::vector<std::string>{"i"});

  end(back);
  deliver_result(open_runtime(kServes, "r2"), "i");
  settle();
  EXPECT_EQ(state("i"), CommandState::Done);
}

TEST_F(Invocations, WithoutARuntimeEndSomeTimeAfterARestartIfNobodyServes) {
  begin_without_runtime();
  restart();
  pass(seconds{1});
  ASSERT_TRUE(core_->poll_timeout());
  EXPECT_LE(*core_->poll_timeout(), now_.steady + options_.lost_after);
  pass(options_.lost_after);
  settle();
  EXPECT_EQ(failure_of("i"), ErrorCode::WorkerLost);
}

TEST_F(Invocations, WithoutARuntimeWaitWhileTheOtherIsBetweenTwoSessions) {
  const SessionRef other = begin_without_runtime();
  ASSERT_EQ(core_->outbox().view(command_key("i"))->record.worker.value(), "");
  say(other, LoadReported{});
  end(other);
  pass(seconds{1});
  const SessionRef back = open_runtime(kRuntimeStatus, "r2");  // its workers are not back yet
  pass(seconds{1});
  settle();
  EXPECT_EQ(failure_of("i"), std::nullopt);
  runtime_status(back, kServes);
  deliver_result(back, "full");
  EXPECT_EQ(sent_ids(settle()), std::vector<std::string>{"i"});
}

TEST_F(Invocations, AreKeptAsWhatTheyAreAcrossARestart) {
  deploy(app());
  const SessionRef first = open_runtime(kServes);
  settle();
  end(first);
  invoke("i");
  settle();
  restart();
  const auto view = core_->outbox().view(command_key("i"));
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->record.target, (CommandTarget{CommandTarget::Kind::Serving, "hello"}));
  EXPECT_EQ(view->record.worker.value(), "r1");
}

}  // namespace
}  // namespace windlass
