// A relay, its language worker and its runtime, as the relay hears them.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "worker-agent/core/relay.h"

namespace windlass::agent {

// A field 1 of text, which is where invocation ids are, but for a log's.
inline std::string body_of(std::string_view id) {
  std::string body;
  function_rpc::append_bytes(body, 1, id);
  return body;
}

class RelayTest : public ::testing::Test {
 protected:
  RelayTest() : RelayTest({.instance_id = "a", .language = "fake"}) {}
  explicit RelayTest(RelayOptions options) : relay(std::move(options), {"rt-1", "ws://127.0.0.1:1"}, now) {}

  Route worker_says(function_rpc::Content content, std::string_view body = {},
                    std::string_view request = "q") {
    const std::string message = function_rpc::compose(request, content, body);
    return relay.from_worker(*function_rpc::peek(message), message, now);
  }
  Route runtime_says(function_rpc::Content content, std::string_view body = {},
                     std::string_view request = "q") {
    const std::string message = function_rpc::compose(request, content, body);
    return relay.from_runtime(*function_rpc::peek(message), now);
  }
  template <class Step>
  std::optional<Step> take() {
    while (auto step = relay.poll_step()) {
      if (auto* found = std::get_if<Step>(&*step)) return std::move(*found);
    }
    return std::nullopt;
  }
  void skip() {
    while (relay.poll_step()) {
    }
  }
  void pass(Duration time) {
    now += time;
    relay.handle_timeout(now);
  }
  void bring_up() {
    relay.start({}, now);
    relay.handle_session_opened(now);
    announce();
  }
  void announce() {
    worker_says(function_rpc::Content::StartStream, body_of("a.1"));
    EXPECT_EQ(runtime_says(function_rpc::Content::WorkerInitRequest, {}, "init"), Route::Forward);
    worker_says(function_rpc::Content::WorkerInitResponse, "init body", "init");
    skip();
  }
  void specialize(const std::string& id = "c-1", const std::string& digest = "d") {
    Application application;
    application.application_id = "shop";
    application.metadata_version = "m";
    application.code_version = "c";
    application.language = "fake";
    application.package_digest = digest;
    application.package_bytes = 10;
    relay.handle({RunId{id}, Specialize{application}}, now);
  }
  void become_ready() {
    specialize();
    relay.handle_package("d", "/apps/d", now);
    relay.handle_reload_answer(true, {}, "reload", now);
    relay.handle_specialized_answer(true, {}, now);
    skip();
  }
  // The runtime is asked to give the worker nothing more, and nothing is done yet.
  bool is_asked_to_part() {
    bool is_asked = false;
    while (auto step = relay.poll_step()) {
      const auto* said = std::get_if<ToRuntime>(&*step);
      if (said != nullptr &&
          function_rpc::peek(said->message)->content == function_rpc::Content::WorkerActionResponse) {
        is_asked = true;
        continue;
      }
      const bool is_end =
          std::holds_alternative<StopWorker>(*step) || std::holds_alternative<DialRuntime>(*step);
      if (is_end) return false;
    }
    return is_asked;
  }

  Instant now{seconds{1000}};
  Relay relay;
};

}  // namespace windlass::agent
