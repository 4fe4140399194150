// Invocations on the native worker: data in and out, failures, logs, many at a time, cancellation, and hosts
// that send nonsense.
#include <gtest/gtest.h>

#include <set>

#include "tests/integration/native-worker/worker_world.h"

namespace windlass::native {
namespace {

TEST_F(NativeWorker, GivesBackEveryKindOfDataAsItCame) {
  start_trial();
  const auto echoed = [&](const rpc::TypedData& data) {
    rpc::StreamingMessage message = invocation("echo", "i");
    *message.mutable_invocation_request()->mutable_input_data(0)->mutable_data() = data;
    host_.send(message);
    return answer().return_value();
  };
  rpc::TypedData data;
  EXPECT_EQ(echoed(data).data_case(), rpc::TypedData::DATA_NOT_SET);
  data.set_string("text");
  EXPECT_EQ(echoed(data).string(), "text");
  data.set_json("{\"a\":1}");
  EXPECT_EQ(echoed(data).json(), "{\"a\":1}");
  data.set_bytes(std::string("\0\xff", 2));
  EXPECT_EQ(echoed(data).bytes(), std::string("\0\xff", 2));
  data.set_int_(-7);
  EXPECT_EQ(echoed(data).int_(), -7);
  data.set_double_(0.5);
  EXPECT_EQ(echoed(data).double_(), 0.5);
  for (int i = 0; i < 3; ++i) data.mutable_collection_string()->add_string("s");
  EXPECT_EQ(echoed(data).int_(), 3);
}

TEST_F(NativeWorker, CarriesLargeMessages) {
  start_trial();
  const std::string large(std::size_t{20} << 20, 'x');
  EXPECT_EQ(invoke("echo", large).return_value().string(), large);
}

TEST_F(NativeWorker, FailsAnAnswerThatIsTooLargeAndNothingElse) {
  start_trial({"--functions-grpc-max-message-length", "1048576"});
  const auto failed = invoke("huge");
  EXPECT_EQ(failed.result().status(), rpc::StatusResult::Failure);
  EXPECT_EQ(failed.result().exception().type(), "AnswerTooLarge");
  EXPECT_EQ(invoke("echo", "on").return_value().string(), "on");
}

TEST_F(NativeWorker, TurnsExceptionsIntoFailuresWithMessageAndType) {
  start_trial();
  const auto thrown = invoke("fail").result();
  EXPECT_EQ(thrown.status(), rpc::StatusResult::Failure);
  EXPECT_EQ(thrown.exception().message(), "no such order");
  EXPECT_EQ(thrown.exception().type(), "std::out_of_range");
  EXPECT_EQ(thrown.exception().source(), "trial.so");
  EXPECT_TRUE(thrown.exception().is_user_exception());
  EXPECT_NE(invoke("fail", "odd").result().exception().type().find("Odd"), std::string::npos);
  EXPECT_EQ(invoke("fail", "nested").result().exception().message(), "the effect; caused by: the cause");
  EXPECT_NE(invoke("fail", "text").result().exception().message().find("is not UTF-8"), std::string::npos);
}

TEST_F(NativeWorker, FailsInvocationsOfFunctionsItDoesNotHave) {
  start_trial();
  const auto failed = invoke("absent").result();
  EXPECT_EQ(failed.status(), rpc::StatusResult::Failure);
  EXPECT_NE(failed.exception().message().find("'absent'"), std::string::npos);
}

TEST_F(NativeWorker, SendsLogsWithTheInvocationBeforeItsAnswer) {
  start_trial();
  rpc::StreamingMessage message = invocation("chatty", "i-1");
  rpc::InvocationRequest* request = message.mutable_invocation_request();
  (*request->mutable_trigger_metadata())["MessageId"].set_string("m-5");
  request->mutable_trace_context()->set_trace_parent("00-aa-bb-01");
  request->mutable_trace_context()->set_trace_state("k=v");
  request->mutable_retry_context()->set_retry_count(1);
  request->mutable_retry_context()->set_max_retry_count(4);
  rpc::ParameterBinding* other = request->add_input_data();
  other->set_name("other");
  other->mutable_data()->set_string("from the other input");
  host_.send(message);
  const auto answered = answer();
  const auto logs = host_.logs();
  ASSERT_EQ(logs.size(), 5U);
  for (const auto& log : logs) EXPECT_EQ(log.invocation_id(), "i-1");
  EXPECT_EQ(logs[0].message(), "line 0");
  EXPECT_EQ(logs[0].level(), rpc::RpcLog::Warning);
  EXPECT_EQ(logs[0].category(), "chatty.Invocation");
  EXPECT_EQ(logs[3].message(), "m-5");
  EXPECT_EQ(logs[4].message(), "00-aa-bb-01|k=v|1/4");
  EXPECT_EQ(answered.return_value().string(), "from the other input");
  ASSERT_EQ(answered.output_data_size(), 1);
  EXPECT_EQ(answered.output_data(0).name(), "copy");
  EXPECT_EQ(answered.output_data(0).data().json(), "[1]");
}

TEST_F(NativeWorker, AnswersHttp) {
  start_trial();
  rpc::StreamingMessage message = invocation("web", "i");
  rpc::RpcHttp* http =
      message.mutable_invocation_request()->mutable_input_data(0)->mutable_data()->mutable_http();
  http->set_method("POST");
  (*http->mutable_nullable_headers())["x-ask"].set_value("what");
  (*http->mutable_params())["id"] = "7";
  http->mutable_body()->set_bytes("body");
  host_.send(message);
  const rpc::RpcHttp full = answer().return_value().http();
  EXPECT_EQ(full.status_code(), "201");
  EXPECT_EQ(full.body().bytes(), "POST 7 body");
  EXPECT_EQ(full.headers().at("x-seen"), "what");
  ASSERT_EQ(full.cookies_size(), 1);
  EXPECT_TRUE(full.cookies(0).http_only().value());
  (*http->mutable_query())["kind"] = "text";
  host_.send(message);
  const rpc::RpcHttp text = answer().return_value().http();
  EXPECT_EQ(text.status_code(), "200");
  EXPECT_EQ(text.headers().at("content-type"), "text/plain; charset=utf-8");
  (*http->mutable_query())["kind"] = "null";
  host_.send(message);
  EXPECT_EQ(answer().return_value().http().status_code(), "204");
  EXPECT_EQ(invoke("web", "no request").result().exception().type(), "HttpRequestMissing");
}

TEST_F(NativeWorker, RefusesSharedMemory) {
  start_trial();
  rpc::StreamingMessage message = invocation("echo", "i");
  message.mutable_invocation_request()->mutable_input_data(0)->mutable_rpc_shared_memory()->set_name("map");
  host_.send(message);
  EXPECT_EQ(answer().result().exception().type(), "SharedMemoryNotSupported");
  rpc::StreamingMessage close;
  close.mutable_close_shared_memory_resources_request()->add_map_names("map");
  const auto closed = host_.ask(close, Content::kCloseSharedMemoryResourcesResponse);
  EXPECT_FALSE(closed.close_shared_memory_resources_response().close_map_results().at("map"));
}

TEST_F(NativeWorker, RunsAsManyAtATimeAsItHasThreadsAndCancelsEachAlone) {
  start_trial({"--threads", "4"});
  for (int i = 0; i < 4; ++i) host_.send(invocation("until_cancelled", "i-" + std::to_string(i)));
  expect_begun(4);
  for (const int i : {2, 0, 3, 1}) {
    host_.send(cancel_of("i-" + std::to_string(i)));
    const auto cancelled = answer();
    EXPECT_EQ(cancelled.invocation_id(), "i-" + std::to_string(i));
    EXPECT_EQ(cancelled.result().status(), rpc::StatusResult::Cancelled);
  }
}

TEST_F(NativeWorker, AnswersStatusWhileEveryThreadIsBusyAndCancelsWhatWaits) {
  start_trial({"--threads", "2"});
  for (int i = 0; i < 3; ++i) host_.send(invocation("until_cancelled", "i-" + std::to_string(i)));
  expect_begun(2);
  host_.ask(status_request(), Content::kWorkerStatusResponse);
  host_.send(cancel_of("i-2"));
  host_.send(cancel_of("i-0"));
  std::set<std::string> over = {answer().invocation_id(), answer().invocation_id()};
  EXPECT_EQ(over, (std::set<std::string>{"i-0", "i-2"}));
}

TEST_F(NativeWorker, CancelsWhatWaitsBehindRequestsAboutTheApplication) {
  start_trial();
  for (int i = 0; i < 200; ++i) host_.send(load_request("echo", "more-" + std::to_string(i)));
  host_.send(invocation("until_cancelled", "held"));
  host_.send(cancel_of("held"));
  const auto cancelled = answer();
  EXPECT_EQ(cancelled.invocation_id(), "held");
  EXPECT_EQ(cancelled.result().status(), rpc::StatusResult::Cancelled);
}

TEST_F(NativeWorker, HearsTheHostAlthoughAShortFunctionTurnsOutLong) {
  start_trial({"--threads", "1"});
  for (int i = 0; i < 500; ++i) ASSERT_EQ(invoke("fickle", "x").return_value().string(), "x");
  for (int round = 0; round < 3; ++round) {
    host_.send(invocation("fickle", "long", "stop"));
    expect_begun(1);
    host_.ask(status_request(), Content::kWorkerStatusResponse);
    host_.send(cancel_of("long"));
    EXPECT_EQ(answer().return_value().string(), "let go");
    for (int i = 0; i < 100; ++i) ASSERT_EQ(invoke("fickle", "x").return_value().string(), "x");
  }
}

TEST_F(NativeWorker, AnswersEachOfThousandsOfInvocationsOnce) {
  start_trial();
  constexpr int kCount = 5000;
  for (int i = 0; i < kCount; ++i)
    host_.send(invocation(i % 7 == 0 ? "chatty" : "echo", std::to_string(i), std::to_string(i)));
  std::set<std::string> seen;
  for (int i = 0; i < kCount; ++i) {
    const auto answered = host_.expect(Content::kInvocationResponse);
    ASSERT_TRUE(answered.has_value()) << i;
    const std::string& id = answered->invocation_response().invocation_id();
    EXPECT_EQ(answered->request_id(), "for-" + id);
    EXPECT_TRUE(seen.insert(id).second) << id;
    if (std::stoi(id) % 7 != 0) {
      EXPECT_EQ(answered->invocation_response().return_value().string(), id);
    }
  }
}

TEST_F(NativeWorker, RunsTheSameInvocationIdTwiceAtOnce) {
  start_trial({"--threads", "2"});
  for (int i = 0; i < 2; ++i) host_.send(invocation("until_cancelled", "same"));
  expect_begun(2);
  host_.send(cancel_of("same"));
  EXPECT_EQ(answer().invocation_id(), "same");
  EXPECT_EQ(answer().invocation_id(), "same");
}

TEST_F(NativeWorker, WaitsWithAnInvocationThatCameRightBehindTheLoad) {
  host_.spawn();
  ASSERT_TRUE(host_.expect(Content::kStartStream));
  host_.send(init_request(app_folder("trial")));
  host_.send(load_request("echo", "id-1"));
  host_.send(invocation("id-1", "early", "bird"));
  EXPECT_EQ(answer().return_value().string(), "bird");
}

TEST_F(NativeWorker, LogsNonsenseAndGoesOn) {
  start_trial();
  host_.send_bytes("\xff\xff\xff garbage");
  host_.send_bytes("");
  rpc::StreamingMessage odd;
  odd.mutable_worker_heartbeat();
  host_.send(odd);
  host_.send(cancel_of("never seen"));
  rpc::StreamingMessage change;
  change.mutable_file_change_event_request();
  host_.send(change);
  EXPECT_EQ(invoke("echo", "on").return_value().string(), "on");
  int errors = 0;
  for (const auto& log : host_.logs()) {
    if (log.level() == rpc::RpcLog::Error && log.log_category() == rpc::RpcLog::System) ++errors;
  }
  EXPECT_EQ(errors, 3);
}

TEST_F(NativeWorker, AnswersWarmup) {
  start("");
  rpc::StreamingMessage warmup;
  warmup.mutable_worker_warmup_request();
  const auto warm = host_.ask(warmup, Content::kWorkerWarmupResponse);
  EXPECT_EQ(warm.worker_warmup_response().result().status(), rpc::StatusResult::Success);
}

TEST_F(NativeWorker, RunsTheSampleApplication) {
  start(WINDLASS_NATIVE_SAMPLE);
  ASSERT_EQ(init_.result().status(), rpc::StatusResult::Success) << init_.result().exception().message();
  EXPECT_EQ(
      invoke("orders", R"({"id":"A1","lines":[{"price":2.5,"count":4},{"price":1}]})").return_value().json(),
      R"({"id":"A1","total":11,"lines":2})");
  EXPECT_NE(invoke("orders", "no JSON").result().exception().message().find("not JSON at byte"),
            std::string::npos);
  rpc::StreamingMessage hello = invocation("hello", "h");
  auto* http = hello.mutable_invocation_request()->mutable_input_data(0)->mutable_data()->mutable_http();
  (*http->mutable_params())["name"] = "Ada";
  host_.send(hello);
  EXPECT_EQ(answer().return_value().http().body().bytes(), "Hello, Ada!\n");
  host_.send(invocation("slow", "s", R"({"seconds":3600})"));
  host_.send(cancel_of("s"));
  EXPECT_EQ(answer().result().status(), rpc::StatusResult::Cancelled);
}

}  // namespace
}  // namespace windlass::native
