#include "scheduler/shell/admin_calls.h"

#include <limits>
#include <optional>
#include <utility>

#include "protocol/base/clip.h"
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

void AdminCalls::note(const std::string& who, const AuditLine& line) {
  if (options_.log == nullptr) return;
  std::uint64_t left_out = 0;
  if (line.action == "submit" || line.action == "invoke") {
    FrequentLines& frequent = frequent_[who];
    if (!frequent.lines.take(control_.loop().now().steady)) {
      ++frequent.left_out;
      return;
    }
    left_out = std::exchange(frequent.left_out, 0);
  }
  options_.log->info("an operator asked for a change",
                     {{"who", who},
                      {"action", line.action},
                      {"tenant", line.tenant},
                      {"sender.id", line.sender_id},
                      {"application", line.application},
                      {"language", line.language},
                      {"function", clip(line.function, limits::kIdBytesMax)},
                      {"package", line.package},
                      {"type", clip(line.type, limits::kTypeBytesMax)},
                      {"id", line.id},
                      {"code", line.code},
                      {"left_out", left_out == 0 ? std::nullopt : std::optional{left_out}}});
}

void AdminCalls::note_app(const std::string& who, std::string_view action, const TenantId& tenant,
                          const std::string& application_id, std::string_view code) {
  note(who, {.action = action, .tenant = tenant.value(), .application = application_id, .code = code});
}

}  // namespace windlass
