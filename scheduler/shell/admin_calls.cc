#include "scheduler/shell/admin_calls.h"

#include <limits>
#include <utility>

#include "scheduler/shell/admin_json.h"

namespace windlass {

AdminCalls::AdminCalls(Control& control, Metrics& metrics, AdminOptions options)
    : control_(control),
      metrics_(metrics),
      options_(std::move(options)),
      alarm_(control.loop(), [this] { end_late_waits(); }) {}

AdminCalls::~AdminCalls() {
  for (const auto& [id, wait] : waits_) control_.stop_waiting(wait.number);
}

// Whoever waits learns how things stand, so that the connections can end.
void AdminCalls::start_draining() {
  is_draining_ = true;
  while (!waits_.empty()) end_wait(waits_.begin()->first);
}

void AdminCalls::health(AdminCall& call) {
  call.answer(json_response([&](codec::JsonWriter& json) {
    json.text("status", "up");
    json.text_if_any("version", options_.version);
  }));
}

void AdminCalls::readiness(AdminCall& call) {
  const StoreHealth& store = control_.core().store_health();
  if (is_draining_) {
    return call.answer(to_response({503, "E.SESSION.RESTARTING", "the scheduler is draining"}));
  }
  if (store.is_failing || store.is_fenced) {
    return call.answer(to_response(
        {503, std::string{to_string(store.code)}, "the store does not take anything: " + store.reason}));
  }
  call.answer(json_response([&](codec::JsonWriter& json) {
    json.text("status", "ready");
    json.integer("sessions", control_.core().fleet().connected());
  }));
}

void AdminCalls::metrics(AdminCall& call) {
  std::size_t pending = 0;
  for (const CommandState state : {CommandState::Waiting, CommandState::Sent}) {
    CommandFilter filter;
    filter.state = state;
    filter.count_max = std::numeric_limits<std::size_t>::max();
    control_.core().outbox().for_each(filter, [&](const CommandView&) { ++pending; });
  }
  metrics_.set_commands_pending(pending);
  call.answer({200, "text/plain; version=0.0.4; charset=utf-8", metrics_.text(), {}});
}

bool AdminCalls::refuse_any_query(AdminCall& call) {
  const auto finished = QueryReader{call.target}.finish();
  if (finished) return false;
  call.answer(to_response(problem_of(finished.error())));
  return true;
}

// Commands come by the thousand, so only whoever looks for them sees them.
void AdminCalls::note(std::string_view who, std::string_view action, const WorkerKey& worker,
                      std::string_view id, std::string_view code) {
  if (options_.log == nullptr) return;
  const LogFields fields = {{"who", who},
                            {"action", action},
                            {"tenant", worker.tenant.value()},
                            {"sender.id", worker.instance.value()},
                            {"id", id},
                            {"code", code}};
  constexpr std::string_view kEvent = "an operator asked for a change";
  action == "submit" ? options_.log->debug(kEvent, fields) : options_.log->info(kEvent, fields);
}

}  // namespace windlass
