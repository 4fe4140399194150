// The native worker's life at a host: start, placeholder, application, end. Every application that cannot be
// loaded says why.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/integration/native-worker/worker_world.h"

namespace windlass::native {
namespace {

TEST_F(NativeWorker, StartsTheStreamWithTheIdsItWasGiven) {
  host_.spawn();
  const auto start = host_.next();
  ASSERT_TRUE(start && start->has_start_stream());
  EXPECT_EQ(start->start_stream().worker_id(), "w.1");
  EXPECT_EQ(start->request_id(), "r-1");
}

TEST_F(NativeWorker, TakesTheOlderArgumentsAlone) {
  host_.spawn_with({"worker", "ignored-path", "--host", "127.0.0.1", "--port", std::to_string(host_.port()),
                    "--workerId", "old.1", "--requestId", "r", "--grpcMaxMessageLength", "1000000"});
  const auto start = host_.next();
  ASSERT_TRUE(start.has_value());
  EXPECT_EQ(start->start_stream().worker_id(), "old.1");
}

TEST_F(NativeWorker, ExitsWith1WithoutItsArguments) {
  host_.spawn_with({"worker", "--host", "127.0.0.1"});
  EXPECT_EQ(host_.wait_for_exit(), 1);
}

TEST_F(NativeWorker, ExitsWith1WhenNobodyListens) {
  host_.spawn_with({"worker", "--host", "127.0.0.1", "--port", "1", "--workerId", "w", "--requestId", "r",
                    "--grpcMaxMessageLength", "1000000"});
  EXPECT_EQ(host_.wait_for_exit(), 1);
}

TEST_F(NativeWorker, ExitsWith0WhenTheHostEndsTheStreamInOrder) {
  start("");
  host_.end_stream(grpc::Status::OK);
  EXPECT_EQ(host_.wait_for_exit(), 0);
}

TEST_F(NativeWorker, ExitsWith1WhenTheHostEndsTheStreamWithAnErrorAlsoWhileAFunctionRuns) {
  start_trial();
  host_.send(invocation("until_cancelled", "i"));
  expect_begun(1);
  host_.end_stream(grpc::Status(grpc::StatusCode::ABORTED, "enough"));
  EXPECT_EQ(host_.wait_for_exit(), 1);
}

TEST_F(NativeWorker, TellsItsCapabilitiesAndVersions) {
  start("");
  EXPECT_EQ(init_.result().status(), rpc::StatusResult::Success);
  EXPECT_EQ(init_.worker_metadata().runtime_name(), "native");
  EXPECT_FALSE(init_.worker_version().empty());
  for (const char* name :
       {"RpcHttpBodyOnly", "TypedDataCollection", "RawHttpBodyBytes", "RpcHttpTriggerMetadataRemoved",
        "UseNullableValueDictionaryForHttp", "WorkerStatus", "HandlesWorkerTerminateMessage",
        "HandlesInvocationCancelMessage", "SupportsLoadResponseCollection", "HandlesWorkerWarmupMessage"}) {
    EXPECT_EQ(init_.capabilities().count(name), 1U) << name;
  }
  EXPECT_EQ(init_.capabilities().count("SharedMemoryDataTransfer"), 0U);
}

TEST_F(NativeWorker, IndexesWhatTheCodeRegistered) {
  start_trial();
  const auto answered =
      host_.ask(metadata_request(), Content::kFunctionMetadataResponse).function_metadata_response();
  EXPECT_EQ(answered.result().status(), rpc::StatusResult::Success);
  EXPECT_FALSE(answered.use_default_metadata_indexing());
  std::map<std::string, rpc::RpcFunctionMetadata> functions;
  for (const auto& function : answered.function_metadata_results()) functions[function.name()] = function;
  ASSERT_EQ(functions.size(), 13U);
  EXPECT_EQ(
      functions["web"].raw_bindings(0),
      R"({"type":"httpTrigger","name":"event","direction":"in","authLevel":"anonymous","methods":["GET","POST"],)"
      R"("route":"web/{id}"})");
  EXPECT_EQ(functions["web"].raw_bindings(1), R"({"type":"http","name":"$return","direction":"out"})");
  EXPECT_EQ(functions["echo"].bindings().at("event").type(), "queueTrigger");
  EXPECT_EQ(functions["echo"].script_file(), "trial.so");
  EXPECT_EQ(functions["hub"].retry_options().maximum_interval().seconds(), 60);
  EXPECT_EQ(functions["hub"].retry_options().max_retry_count(), -1);
}

TEST_F(NativeWorker, LoadsOneOrManyAndNamesWhatItDoesNotHave) {
  start_trial();
  const auto one =
      host_.ask(load_request("echo", "id-7"), Content::kFunctionLoadResponse).function_load_response();
  EXPECT_EQ(one.function_id(), "id-7");
  EXPECT_EQ(one.result().status(), rpc::StatusResult::Success);
  rpc::StreamingMessage many;
  auto* requests = many.mutable_function_load_request_collection();
  *requests->add_function_load_requests() = load_request("fail", "id-8").function_load_request();
  *requests->add_function_load_requests() = load_request("absent", "id-9").function_load_request();
  const auto loaded =
      host_.ask(many, Content::kFunctionLoadResponseCollection).function_load_response_collection();
  ASSERT_EQ(loaded.function_load_responses_size(), 2);
  EXPECT_EQ(loaded.function_load_responses(0).result().status(), rpc::StatusResult::Success);
  EXPECT_EQ(loaded.function_load_responses(1).function_id(), "id-9");
  EXPECT_EQ(loaded.function_load_responses(1).result().status(), rpc::StatusResult::Failure);
  EXPECT_NE(loaded.function_load_responses(1).result().exception().message().find("'absent'"),
            std::string::npos);
  EXPECT_EQ(invoke("id-7", "by id").return_value().string(), "by id");
}

TEST_F(NativeWorker, BecomesAnApplicationOnce) {
  start("");
  const auto before =
      host_.ask(metadata_request(), Content::kFunctionMetadataResponse).function_metadata_response();
  EXPECT_EQ(before.result().status(), rpc::StatusResult::Failure);

  rpc::StreamingMessage reload = reload_request(app_folder("trial"));
  auto& variables = *reload.mutable_function_environment_reload_request()->mutable_environment_variables();
  variables["PATH"] = "/usr/bin";
  variables["GREETING"] = "salut";
  const auto first =
      host_.ask(reload, Content::kFunctionEnvironmentReloadResponse).function_environment_reload_response();
  ASSERT_EQ(first.result().status(), rpc::StatusResult::Success) << first.result().exception().message();
  EXPECT_EQ(first.capabilities_update_strategy(), rpc::FunctionEnvironmentReloadResponse::replace);
  EXPECT_EQ(first.capabilities().size(), init_.capabilities().size());
  const std::string folder = std::filesystem::canonical(app_folder("trial"));
  EXPECT_EQ(invoke("environment", "GREETING").return_value().string(), "salut|" + folder);
  EXPECT_EQ(invoke("environment", "HOME").return_value().string(), "unset|" + folder);

  const auto second =
      host_.ask(reload, Content::kFunctionEnvironmentReloadResponse).function_environment_reload_response();
  EXPECT_EQ(second.result().status(), rpc::StatusResult::Failure);
  EXPECT_NE(second.result().exception().message().find("start a new worker process"), std::string::npos);
  EXPECT_EQ(invoke("echo", "still here").return_value().string(), "still here");
}

TEST_F(NativeWorker, SurvivesAReloadIntoAFolderThatIsNotThere) {
  start("");
  const auto bad = host_.ask(reload_request("/no/such/folder"), Content::kFunctionEnvironmentReloadResponse)
                       .function_environment_reload_response();
  EXPECT_EQ(bad.result().status(), rpc::StatusResult::Failure);
  EXPECT_NE(bad.result().exception().message().find("/no/such/folder"), std::string::npos);
  const auto good =
      host_.ask(reload_request(app_folder("trial")), Content::kFunctionEnvironmentReloadResponse)
          .function_environment_reload_response();
  EXPECT_EQ(good.result().status(), rpc::StatusResult::Success);
}

TEST_F(NativeWorker, SaysWhyAnApplicationDoesNotLoadAndSaysItAgain) {
  const std::string broken = testing::TempDir() + "native_broken";
  std::filesystem::create_directories(broken);
  std::ofstream(broken + "/text.so") << "no shared object";
  const std::string bare = testing::TempDir() + "native_bare";
  std::filesystem::create_directories(bare);
  const std::map<std::string, std::string> reasons = {
      {app_folder("throwing"), "threw std::runtime_error: no settings here"},
      {app_folder("empty"), "registers no function"},
      {app_folder("duplicates"), "registered twice, by one.so and by two.so"},
      {broken, "text.so does not load: "},
      {bare, "has no shared object"},
  };
  for (const auto& [folder, reason] : reasons) {
    ScriptedHost host;
    host.spawn();
    ASSERT_TRUE(host.expect(Content::kStartStream));
    const auto init = host.ask(init_request(folder), Content::kWorkerInitResponse).worker_init_response();
    EXPECT_EQ(init.result().status(), rpc::StatusResult::Failure) << folder;
    EXPECT_NE(init.result().exception().message().find(reason), std::string::npos)
        << init.result().exception().message();
    const auto index =
        host.ask(metadata_request(folder), Content::kFunctionMetadataResponse).function_metadata_response();
    EXPECT_EQ(index.result().exception().message(), init.result().exception().message());
    const auto load =
        host.ask(load_request("never", "never"), Content::kFunctionLoadResponse).function_load_response();
    EXPECT_EQ(load.result().exception().message(), init.result().exception().message());
  }
}

TEST_F(NativeWorker, TerminatesAtOnceWhenNothingRuns) {
  start_trial();
  host_.send(terminate_in(60));
  EXPECT_EQ(host_.wait_for_exit(), 0);
}

TEST_F(NativeWorker, FinishesWhatRunsBeforeItTerminatesAndTakesNothingNew) {
  start_trial();
  host_.send(invocation("fickle", "kept", "stop"));
  expect_begun(1);
  host_.send(terminate_in(60));
  host_.send(invocation("echo", "late"));
  const auto late = answer();
  EXPECT_EQ(late.invocation_id(), "late");
  EXPECT_EQ(late.result().exception().type(), "WorkerTerminating");
  host_.send(cancel_of("kept"));  // it returns now
  EXPECT_EQ(answer().return_value().string(), "let go");
  EXPECT_EQ(host_.wait_for_exit(), 0);
}

TEST_F(NativeWorker, AnswersForWhatDoesNotFinishInTheGracePeriod) {
  start_trial();
  host_.send(invocation("fickle", "stuck", "stop"));
  expect_begun(1);
  host_.send(terminate_in(0));
  const auto stuck = answer();
  EXPECT_EQ(stuck.invocation_id(), "stuck");
  EXPECT_EQ(stuck.result().exception().type(), "WorkerTerminated");
  EXPECT_EQ(host_.wait_for_exit(), 0);
}

TEST_F(NativeWorker, DiesAloneWhenUserCodeCrashes) {
  start_trial();
  host_.send(invocation("crash", "i"));
  EXPECT_EQ(host_.wait_for_exit(), -SIGABRT);
}

}  // namespace
}  // namespace windlass::native
