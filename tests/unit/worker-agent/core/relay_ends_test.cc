// Ends of the language worker: the runtime is told at once and of what the worker had, and a worker that the
// runtime drained stays away until somebody wants it again.
#include <gtest/gtest.h>

#include "schema/proto/function_rpc.pb.h"
#include "worker-agent/core/relay.h"

namespace windlass::agent {
namespace {

namespace rpc = AzureFunctionsRpcMessages;
using function_rpc::compose;
using function_rpc::Content;
using function_rpc::peek;

std::string first_field(std::string_view text) {
  std::string body;
  function_rpc::append_bytes(body, 1, text);
  return body;
}

class RelayEnds : public ::testing::Test {
 protected:
  Route worker_says(Content content, std::string_view body = {}, std::string_view request = "q") {
    const std::string message = compose(request, content, body);
    return relay.from_worker(*peek(message), message, now);
  }
  Route runtime_says(Content content, std::string_view body = {}, std::string_view request = "q") {
    const std::string message = compose(request, content, body);
    return relay.from_runtime(*peek(message), now);
  }
  template <class Step>
  std::vector<Step> take() {
    std::vector<Step> found;
    while (auto step = relay.poll_step()) {
      if (auto* each = std::get_if<Step>(&*step)) found.push_back(std::move(*each));
    }
    return found;
  }
  // The ends that the runtime was told of since the last look.
  std::vector<rpc::WorkerEnded> ends() {
    std::vector<rpc::WorkerEnded> told;
    for (const ToRuntime& each : take<ToRuntime>()) {
      rpc::StreamingMessage message;
      EXPECT_TRUE(message.ParseFromString(each.message));
      if (message.has_worker_ended()) told.push_back(message.worker_ended());
    }
    return told;
  }
  void come_up(const std::string& worker) {
    worker_says(Content::StartStream, first_field(worker));
    runtime_says(Content::WorkerInitRequest, {}, "init");
    worker_says(Content::WorkerInitResponse, "init body", "init");
    take<Spawn>();
  }
  void bring_up() {
    relay.start({}, now);
    relay.handle_session_opened(now);
    come_up("a.1");
  }
  void kill() {
    relay.handle_stream_closed(now);
    relay.handle_worker_ended({.kind = WorkerEnd::Kind::Signalled, .code = 9}, now);
  }
  void want_memory() {
    std::string body = first_field("memory pressure is critical");
    function_rpc::append_bytes(body, 2, "memory");
    runtime_says(Content::WorkerStayDown, body);
  }
  void drain_worker() {
    want_memory();
    runtime_says(Content::WorkerTerminate);
    take<StopWorker>();
    kill();
  }

  Instant now{seconds{1000}};
  Relay relay{{.instance_id = "a", .language = "fake"}, {"rt-1", "ws://127.0.0.1:1"}, now};
};

TEST_F(RelayEnds, TheRuntimeIsToldAsSoonAsTheStreamEndsAndOfWhatTheWorkerHad) {
  bring_up();
  for (const char* id : {"answered", "running", "unwritten"}) {
    EXPECT_EQ(runtime_says(Content::InvocationRequest, first_field(id)), Route::Forward);
  }
  worker_says(Content::InvocationResponse, first_field("answered"));
  relay.handle_unwritten("unwritten");
  relay.handle_stream_closed(now);
  const auto told = ends();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].worker_id(), "a.1");
  ASSERT_EQ(told[0].running_invocation_ids_size(), 1);
  EXPECT_EQ(told[0].running_invocation_ids(0), "running");
  EXPECT_EQ(runtime_says(Content::InvocationRequest, first_field("late")), Route::Drop);
  EXPECT_EQ(relay.invocations(), 0U);
}

TEST_F(RelayEnds, AnEndOfTheProcessBeforeThatOfItsStreamIsToldTheSame) {
  bring_up();
  runtime_says(Content::InvocationRequest, first_field("running"));
  relay.handle_worker_ended({.kind = WorkerEnd::Kind::Exited, .code = 3}, now);
  const auto told = ends();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].running_invocation_ids_size(), 1);
  EXPECT_EQ(told[0].failures(), 1U);
  EXPECT_NE(told[0].reason().find("code 3"), std::string::npos);
}

TEST_F(RelayEnds, StartsThatFailAreToldWithTheirCount) {
  bring_up();
  kill();
  EXPECT_EQ(ends().back().failures(), 1U);
  for (std::uint32_t failures = 2; failures <= 4; ++failures) {
    now += seconds{31};
    relay.handle_timeout(now);
    ASSERT_EQ(take<Spawn>().size(), 1U);
    relay.handle_worker_ended({.kind = WorkerEnd::Kind::NotStarted, .reason = "no such file"}, now);
    const auto told = ends();
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].failures(), failures);
    EXPECT_EQ(told[0].worker_id(), "a." + std::to_string(failures));
    EXPECT_NE(told[0].reason().find("no such file"), std::string::npos);
  }
}

TEST_F(RelayEnds, ASessionThatNeverHeardOfAWorkerIsToldOfNoEnd) {
  relay.start({}, now);
  relay.handle_session_opened(now);
  relay.handle_worker_ended({.kind = WorkerEnd::Kind::NotStarted, .reason = "no such file"}, now);
  EXPECT_TRUE(ends().empty());
}

TEST_F(RelayEnds, ADrainedWorkerIsNotStartedAgainByItself) {
  bring_up();
  drain_worker();
  EXPECT_TRUE(take<Spawn>().empty());
  EXPECT_EQ(relay.status().state, WorkerState::Drained);
  EXPECT_EQ(relay.status().last_error, "the runtime drained it: memory pressure is critical");
  now += seconds{3600};
  relay.handle_timeout(now);
  relay.handle_session_ended(now);
  relay.handle_session_opened(now);
  EXPECT_TRUE(take<Spawn>().empty());
}

TEST_F(RelayEnds, AWorkerThatWasOnlyTerminatedIsStartedAgain) {
  bring_up();
  runtime_says(Content::WorkerTerminate);
  kill();
  EXPECT_EQ(take<Spawn>().size(), 1U);
}

TEST_F(RelayEnds, ADrainIsRememberedOverARestartOfTheAgent) {
  bring_up();
  runtime_says(Content::WorkerStayDown, first_field("scale down"));
  const auto kept = take<Remember>();
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_TRUE(kept[0].assignment.is_drained);
  EXPECT_FALSE(relay.status().is_drained_for_memory) << "somebody ordered it";
  Assignment again;
  again.is_drained = true;
  EXPECT_EQ(parse_assignment(assignment_text(again))->is_drained, true);
  Relay next{{.instance_id = "a", .language = "fake"}, {"rt-1", "ws://127.0.0.1:1"}, now};
  next.start(again, now);
  bool is_spawned = false;
  while (auto step = next.poll_step()) is_spawned = is_spawned || std::holds_alternative<Spawn>(*step);
  EXPECT_FALSE(is_spawned);
  EXPECT_EQ(next.status().state, WorkerState::Drained);
  next.stop(now);
  EXPECT_TRUE(next.is_stopped());
}

TEST_F(RelayEnds, WhyItWasDrainedIsSaidAndRememberedUntilItIsResumed) {
  bring_up();
  want_memory();
  EXPECT_TRUE(relay.status().is_drained_for_memory);
  const auto kept = take<Remember>();
  ASSERT_EQ(kept.size(), 1U);
  const auto read = parse_assignment(assignment_text(kept[0].assignment));
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(read->is_drained_for_memory);
  Relay next{{.instance_id = "a", .language = "fake"}, {"rt-1", "ws://127.0.0.1:1"}, now};
  next.start(*read, now);
  EXPECT_TRUE(next.status().is_drained_for_memory);
  relay.handle(*parse_worker_command(kResume, "{}", RunId{"c-1"}), now);
  EXPECT_FALSE(relay.status().is_drained_for_memory);
}

TEST_F(RelayEnds, ResumeStartsADrainedWorkerAndIsDoneWhenItIsUp) {
  bring_up();
  drain_worker();
  take<Spawn>();
  relay.handle(*parse_worker_command(kResume, "{}", RunId{"c-1"}), now);
  ASSERT_EQ(take<Spawn>().size(), 1U);
  EXPECT_NE(relay.status().state, WorkerState::Drained);
  worker_says(Content::StartStream, first_field("a.2"));
  runtime_says(Content::WorkerInitRequest, {}, "init");
  worker_says(Content::WorkerInitResponse, "init body", "init");
  const auto done = take<CommandDone>();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_NE(done[0].result.find("\"ok\":true"), std::string::npos);
  EXPECT_EQ(relay.status().state, WorkerState::Placeholder);
}

TEST_F(RelayEnds, EveryCommandOfTheSchedulerWantsAWorker) {
  bring_up();
  drain_worker();
  take<Spawn>();
  relay.handle({RunId{"c-1"}, Release{}}, now);
  EXPECT_EQ(take<Spawn>().size(), 1U);
}

}  // namespace
}  // namespace windlass::agent
