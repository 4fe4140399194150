// The short words of the native worker's tests: a worker at a host, and requests to it.
#pragma once

#include <gtest/gtest.h>
#include <string>
#include <utility>

#include "tests/integration/native-worker/scripted_host.h"

namespace windlass::native {

using Content = rpc::StreamingMessage::ContentCase;

inline std::string app_folder(const std::string& name) {
  return std::string(WINDLASS_NATIVE_APPS) + "/" + name;
}

inline rpc::StreamingMessage init_request(const std::string& folder = "") {
  rpc::StreamingMessage message;
  message.mutable_worker_init_request()->set_function_app_directory(folder);
  return message;
}

inline rpc::StreamingMessage reload_request(const std::string& folder) {
  rpc::StreamingMessage message;
  message.mutable_function_environment_reload_request()->set_function_app_directory(folder);
  return message;
}

inline rpc::StreamingMessage metadata_request(const std::string& folder = "") {
  rpc::StreamingMessage message;
  message.mutable_functions_metadata_request()->set_function_app_directory(folder);
  return message;
}

inline rpc::StreamingMessage load_request(const std::string& name, const std::string& id) {
  rpc::StreamingMessage message;
  message.mutable_function_load_request()->set_function_id(id);
  message.mutable_function_load_request()->mutable_metadata()->set_name(name);
  return message;
}

inline rpc::StreamingMessage invocation(const std::string& function, const std::string& id,
                                        const std::string& text = "") {
  rpc::StreamingMessage message;
  message.set_request_id("for-" + id);
  rpc::InvocationRequest* request = message.mutable_invocation_request();
  request->set_invocation_id(id);
  request->set_function_id(function);
  rpc::ParameterBinding* input = request->add_input_data();
  input->set_name("event");
  input->mutable_data()->set_string(text);
  return message;
}

inline rpc::StreamingMessage cancel_of(const std::string& id) {
  rpc::StreamingMessage message;
  message.mutable_invocation_cancel()->set_invocation_id(id);
  return message;
}

inline rpc::StreamingMessage status_request() {
  rpc::StreamingMessage message;
  message.mutable_worker_status_request();
  return message;
}

inline rpc::StreamingMessage terminate_in(std::int64_t seconds) {
  rpc::StreamingMessage message;
  message.mutable_worker_terminate()->mutable_grace_period()->set_seconds(seconds);
  return message;
}

class NativeWorker : public testing::Test {
 protected:
  // Started, and with the trial application where nothing else is said.
  void start(const std::string& folder, std::vector<std::string> arguments = {}) {
    host_.spawn(std::move(arguments));
    ASSERT_TRUE(host_.expect(Content::kStartStream));
    init_ = host_.ask(init_request(folder), Content::kWorkerInitResponse).worker_init_response();
  }
  void start_trial(std::vector<std::string> arguments = {}) {
    start(app_folder("trial"), std::move(arguments));
    ASSERT_EQ(init_.result().status(), rpc::StatusResult::Success) << init_.result().exception().message();
  }

  rpc::InvocationResponse answer() {
    const auto message = host_.expect(Content::kInvocationResponse);
    EXPECT_TRUE(message.has_value());
    return message ? message->invocation_response() : rpc::InvocationResponse();
  }
  rpc::InvocationResponse invoke(const std::string& function, const std::string& text = "") {
    host_.send(invocation(function, "i-" + std::to_string(++invocations_), text));
    return answer();
  }
  // Waits until as many functions said that they began.
  void expect_begun(int count) {
    for (int seen = 0; seen < count;) {
      const auto message = host_.expect(Content::kRpcLog);
      ASSERT_TRUE(message.has_value());
      if (message->rpc_log().message() == "began") ++seen;
    }
  }

  ScriptedHost host_;
  rpc::WorkerInitResponse init_;
  int invocations_ = 0;
};

}  // namespace windlass::native
