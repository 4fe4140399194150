// A scheduler's core, an application with two workers, and commands for whoever suits.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/unit/scheduler/core/apps_fixture.h"

namespace windlass {

using Ids = std::vector<std::string>;

inline const WorkerKey kSecond = worker_key("w2");

class Placement : public AppsTest {
 protected:
  RequestId send_to(CommandTarget target, std::string_view id, bool is_idempotent = false,
                    std::string_view type = "biz.echo") {
    const RequestId request{++next_request_};
    core_->handle(SubmitCommand{request,
                                {kAcme, InstanceId{}},
                                std::string{id},
                                std::string{type},
                                "{}",
                                std::nullopt,
                                std::move(target),
                                is_idempotent},
                  now_);
    return request;
  }
  RequestId send_to_app(std::string_view id, bool is_idempotent = false, std::string_view type = "biz.echo") {
    return send_to({CommandTarget::Kind::Application, "hello"}, id, is_idempotent, type);
  }

  void register_as(SessionRef session, std::uint32_t max_parallel, std::vector<std::string> types = {},
                   std::vector<std::string> runtimes = {"node"}) {
    auto profile = std::make_shared<WorkerProfile>();
    profile->max_parallel = max_parallel;
    profile->payload_types = std::move(types);
    profile->runtimes = std::move(runtimes);
    say(session, Registered{std::move(profile)});
  }

  // Two workers that have the application.
  void start_app() {
    open_runtime();
    deploy(app());
    for (const WorkerKey& each : {kWorker, kSecond}) open_placeholder(each);
    settle();
    assign(2, "a");
    settle();
    deliver_result(sessions_[kWorker], "a.1");
    deliver_result(sessions_[kSecond], "a.2");
    settle();
    ASSERT_EQ(assigned(kWorker), AssignmentState::Ready);
    ASSERT_EQ(assigned(kSecond), AssignmentState::Ready);
  }

  std::string worker_of(std::string_view id) const {
    const auto view = core_->outbox().view(command_key(id));
    return view ? view->record.worker.value() : "unknown";
  }
  const Failure* failure_of(std::string_view id) const {
    const auto view = core_->outbox().view(command_key(id));
    return view ? view->failure : nullptr;
  }
  void report(SessionRef session, bool is_healthy, bool is_short) {
    say(session, LoadReported{is_healthy, 0, {}, {}, {}, {}, "{}", is_short, false});
  }
};

}  // namespace windlass
