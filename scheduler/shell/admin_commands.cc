// The routes of commands and messages, and the requests that wait for a command's outcome.
#include <algorithm>
#include <utility>

#include "protocol/base/limits.h"
#include "protocol/crypto/percent_encoding.h"
#include "scheduler/core/core_options.h"
#include "scheduler/shell/admin_app_problems.h"
#include "scheduler/shell/admin_calls.h"
#include "scheduler/shell/admin_json.h"

namespace windlass {
namespace {

constexpr IntegerRange kTimeoutRange{
    1, static_cast<std::uint64_t>(limits::kCommandTimeoutMax / milliseconds{1})};
constexpr IntegerRange kWaitRange{0, static_cast<std::uint64_t>(limits::kAdminWaitMax / milliseconds{1})};

bool is_finished(const CommandView& view) {
  return view.state == CommandState::Done || view.state == CommandState::Failed;
}

Problem unknown(const CommandKey& key) {
  return {404, "E.CMD.UNKNOWN",
          "no command '" + key.id + "' of tenant '" + key.tenant.value() +
              "' is known; finished ones are forgotten after a while"};
}

// What commands and messages have in common as lists.
template <class Filter>
void read_page(QueryReader& query, Filter& filter) {
  if (auto tenant = query.text("tenant")) filter.tenant = TenantId{std::move(*tenant)};
  if (auto worker = query.text("worker")) filter.worker = InstanceId{std::move(*worker)};
  filter.count_max = query.integer("limit", {1, limits::kAdminPageMax}).value_or(limits::kAdminPage);
}

}  // namespace

void AdminCalls::submit(AdminCall& call) {
  submit_to(call, CommandTarget::Kind::Worker);
}

void AdminCalls::submit_to_app(AdminCall& call) {
  submit_to(call, CommandTarget::Kind::Application);
}

void AdminCalls::submit_to_language(AdminCall& call) {
  submit_to(call, CommandTarget::Kind::Language);
}

void AdminCalls::submit_to(AdminCall& call, CommandTarget::Kind kind) {
  if (refuse_any_query(call)) return;
  BodyReader body{call.request.body};
  SubmitCommand request;
  request.worker = call.worker();
  if (kind != CommandTarget::Kind::Worker) {
    request.target = {kind, call.names[1]};
    request.worker.instance = InstanceId{};
    request.is_idempotent = body.boolean("idempotent").value_or(false);
  }
  request.id = body.text("id").value_or("");
  auto type = body.text("type");
  auto payload = body.object("payload");
  if (const auto timeout = body.integer("timeout_ms", kTimeoutRange)) {
    request.timeout = milliseconds{static_cast<std::int64_t>(*timeout)};
  }
  body.require("type", type.has_value());
  body.require("payload", payload.has_value());
  if (const auto finished = body.finish(); !finished) {
    return call.answer(to_response(problem_of(finished.error())));
  }
  request.type = std::move(*type);
  request.payload = std::move(*payload);
  const WorkerKey key = request.worker;
  const CommandTarget target = request.target;
  const std::string command_type = request.type;
  const bool is_shared = kind != CommandTarget::Kind::Worker;
  control_.ask(std::move(request), [this, key, target, is_shared, command_type, who = call.request.token_name,
                                    answer = std::move(call.answer)](const Reply& reply) {
    AuditLine line{.action = "submit", .tenant = key.tenant.value(), .sender_id = key.instance.value()};
    if (is_shared)
      (target.kind == CommandTarget::Kind::Application ? line.application : line.language) = target.name;
    line.type = command_type;
    if (const auto* error = std::get_if<Error>(&reply.outcome)) {
      line.code = to_string(error->code);
      note(who, line);
      const bool is_of_app = is_shared && error->code != ErrorCode::ResultDuplicate;
      return answer(to_response(is_of_app ? app_problem_of(*error) : problem_of(*error)));
    }
    const auto& accepted = std::get<CommandAccepted>(reply.outcome);
    line.id = accepted.key.id;
    note(who, line);
    HttpResponse response = json_response(
        [&](codec::JsonWriter& json) {
          json.text("tenant", accepted.key.tenant.value());
          json.text("id", accepted.key.id);
          json.boolean("repeated", accepted.is_repeated);
        },
        202);
    response.headers.emplace_back("Location", "/v1/commands/" + percent_encode(accepted.key.tenant.value()) +
                                                  '/' + percent_encode(accepted.key.id));
    answer(std::move(response));
  });
}

void AdminCalls::commands(AdminCall& call) {
  QueryReader query{call.target};
  CommandFilter filter;
  read_page(query, filter);
  filter.before_number = query.integer("after", {0, limits::kIntegerMax});
  if (const auto state = query.text("state")) {
    filter.state = command_state_from(*state);
    if (!filter.state) query.refuse("state", "one of waiting, sent, done and failed is wanted");
  }
  if (const auto finished = query.finish(); !finished) {
    return call.answer(to_response(problem_of(finished.error())));
  }
  const std::size_t limit = filter.count_max++;  // one more tells whether there is a next page
  std::size_t shown = 0;
  std::uint64_t last = 0;
  call.answer(json_response([&](codec::JsonWriter& json) {
    json.begin_list("commands");
    control_.core().outbox().for_each(filter, [&](const CommandView& view) {
      if (shown++ == limit) return;
      last = view.record.number;
      write_command(json, view, Detail::Short);
    });
    json.end_list();
    if (shown > limit) json.integer("next", last);
  }));
}

void AdminCalls::command(AdminCall& call) {
  QueryReader query{call.target};
  const std::uint64_t wait = query.integer("wait_ms", kWaitRange).value_or(0);
  if (const auto finished = query.finish(); !finished) {
    return call.answer(to_response(problem_of(finished.error())));
  }
  const CommandKey key{TenantId{call.names[0]}, call.names[1]};
  const auto view = control_.core().outbox().view(key);
  if (!view || is_finished(*view) || wait == 0 || is_draining_) return call.answer(show(key));
  begin_wait(key, milliseconds{static_cast<std::int64_t>(wait)}, call);
}

void AdminCalls::messages(AdminCall& call) {
  QueryReader query{call.target};
  InboxFilter filter;
  read_page(query, filter);
  filter.after_number = query.integer("after", {0, limits::kIntegerMax}).value_or(0);
  if (const auto finished = query.finish(); !finished) {
    return call.answer(to_response(problem_of(finished.error())));
  }
  const std::size_t limit = filter.count_max++;
  std::size_t shown = 0;
  std::size_t bytes = 0;
  std::uint64_t last = 0;
  bool is_more = false;
  call.answer(json_response([&](codec::JsonWriter& json) {
    json.begin_list("messages");
    control_.core().inbox().for_each(filter, [&](const InboxRecord& record) {
      is_more = is_more || shown == limit || bytes > limits::kAdminListBytesMax;
      if (is_more) return;
      ++shown;
      bytes += record.message.payload.size();
      if (record.message.attachment) bytes += record.message.attachment->bytes.size();
      last = record.number;
      write_message(json, record);
    });
    json.end_list();
    if (is_more) json.integer("next", last);
  }));
}

HttpResponse AdminCalls::show(const CommandKey& command) const {
  const auto view = control_.core().outbox().view(command);
  if (!view) return to_response(unknown(command));
  HttpResponse response{200, "application/json", {}, {}};
  {
    codec::JsonWriter json{response.body};
    write_command(json, *view, Detail::Full);
    json.finish();
  }
  response.body += '\n';
  return response;
}

void AdminCalls::begin_wait(const CommandKey& command, Duration time, AdminCall& call) {
  if (waits_.size() >= limits::kAdminWaitsMax) {
    return call.answer(to_response(
        {429, "E.LIMIT.CAPACITY", "too many requests wait for commands; ask without wait_ms, or later"}));
  }
  const std::uint64_t id = next_wait_++;
  const Instant deadline = control_.loop().now().steady + time;
  const std::uint64_t number = control_.wait_for(command, [this, id] { end_wait(id); });
  waits_.emplace(id, Wait{command, std::move(call.answer), number, deadline, call.request.id});
  deadlines_.emplace(deadline, id);
  set_alarm();
}

void AdminCalls::forget_waiter(std::uint64_t request) {
  const auto found =
      std::ranges::find_if(waits_, [&](const auto& each) { return each.second.request == request; });
  if (found != waits_.end()) end_wait(found->first);
}

void AdminCalls::end_wait(std::uint64_t id) {
  const auto found = waits_.extract(id);
  if (!found) return;
  const Wait& wait = found.mapped();
  control_.stop_waiting(wait.number);
  deadlines_.erase({wait.deadline, id});
  set_alarm();
  wait.answer(show(wait.command));
}

void AdminCalls::end_late_waits() {
  const Instant now = control_.loop().now().steady;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) end_wait(deadlines_.begin()->second);
  set_alarm();
}

void AdminCalls::set_alarm() {
  alarm_.set(deadlines_.empty() ? std::nullopt : std::optional{deadlines_.begin()->first});
}

}  // namespace windlass
