// A scheduler's core with an application, a runtime and workers that may run it.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "scheduler/core/runtime_text.h"
#include "tests/unit/scheduler/core/core_fixture.h"

namespace windlass {

inline const TenantId kAcme{"acme"};
inline constexpr std::string_view kPlaceholder =
    R"({"worker_id":"w1.1","language":"node","runtime":"r1","state":"placeholder","pid":1})";
inline constexpr std::string_view kHolds =
    R"({"worker_id":"w1.1","language":"node","runtime":"r1","state":"ready",)"
    R"("application":{"application_id":"hello","metadata_version":"m","code_version":"v1"}})";
inline constexpr std::string_view kRuntimeStatus =
    R"({"url":"wss://r1","health":"Healthy","applications":[],"workers":[]})";

class AppsTest : public CoreTest {
 protected:
  AppsTest() {
    options_.runtime_addresses = {"*"};
    restart();
  }

  static AppRecord app(std::string version = "v1", std::string digest = std::string(64, 'a')) {
    AppRecord record;
    record.key = {kAcme, "hello", std::move(version)};
    record.metadata_version = "m";
    record.language = "node";
    record.digest = std::move(digest);
    record.bytes = 10;
    record.settings = {{"KEY", "hush"}};
    return record;
  }

  RequestId deploy(AppRecord record) {
    const RequestId request{++next_request_};
    core_->handle(DeployApp{request, std::move(record)}, now_);
    return request;
  }

  SessionRef open_runtime(std::string_view text = kRuntimeStatus, std::string_view name = "r1") {
    const SessionRef session{0, ++next_session_};
    core_->handle(SessionOpened{session, worker_key(name), "s", Role::Runtime, Revision::Two, "peer"}, now_);
    runtime_status(session, text);
    if (name == "r1") runtime_ = session;
    return session;
  }

  void runtime_status(SessionRef session, std::string_view text) {
    deliver(session,
            {.type = "biz.runtime.status", .id = "s" + std::to_string(++statuses_), .payload = text});
  }

  SessionRef open_placeholder(const WorkerKey& worker = kWorker) {
    const SessionRef session = open(worker);
    status(session, kPlaceholder);
    return session;
  }

  void status(SessionRef session, std::string_view text) {
    deliver(session, {.type = "biz.worker.status", .id = "s" + std::to_string(++statuses_), .payload = text});
  }

  RequestId assign(std::uint32_t workers = 1, std::string id = "a") {
    const RequestId request{++next_request_};
    core_->handle(AssignWorkers{request, kAcme, "hello", "", workers, "", false, std::move(id)}, now_);
    return request;
  }

  RequestId unassign(std::string id = "u") {
    const RequestId request{++next_request_};
    core_->handle(UnassignWorkers{request, kAcme, "hello", "", std::nullopt, std::move(id)}, now_);
    return request;
  }

  // Time in which the runtime and these are heard.
  void pass_heard(Duration time, std::initializer_list<SessionRef> sessions = {}) {
    for (Duration done{}; done < time; done += options_.lost_after / 3) {
      if (runtime_) say(*runtime_, LoadReported{});
      for (const SessionRef session : sessions) say(session, LoadReported{});
      pass(options_.lost_after / 3);
    }
  }

  std::optional<AssignmentState> assigned(const WorkerKey& worker = kWorker) const {
    const AssignmentRecord* const found = core_->apps().assignment_of(worker);
    return found == nullptr ? std::nullopt : std::optional(found->state);
  }

  static const AssignmentsMade* made(const Effects& effects, RequestId request) {
    const Reply* const reply = reply_to(effects, request);
    return reply == nullptr ? nullptr : std::get_if<AssignmentsMade>(&reply->outcome);
  }

  // A deployed application, a runtime and one placeholder.
  SessionRef begin() {
    deploy(app());
    open_runtime();
    const SessionRef session = open_placeholder();
    settle();
    return session;
  }

  // And the placeholder became the application's.
  SessionRef begin_ready() {
    const SessionRef session = begin();
    assign();
    settle();
    status(session, kHolds);
    deliver_result(session, "a.1");
    settle();
    return session;
  }

  std::optional<SessionRef> runtime_;
  int statuses_ = 0;
};

}  // namespace windlass
