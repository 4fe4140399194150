// The routes that make workers run an application, share its traffic, and call it. Each becomes commands of
// the outbox, which outlive this process.
#include <algorithm>
#include <memory>
#include <utility>

#include "protocol/crypto/percent_encoding.h"
#include "scheduler/core/runtime_text.h"
#include "scheduler/shell/admin_app_json.h"
#include "scheduler/shell/admin_app_problems.h"
#include "scheduler/shell/admin_calls.h"
#include "scheduler/shell/admin_json.h"

namespace windlass {
namespace {

constexpr IntegerRange kWorkersRange{1, 10'000};
constexpr IntegerRange kWeightRange{0, 1'000'000};
// The runtime gives up first and says why; the command only later.
constexpr Duration kInvokeMargin = seconds{10};
constexpr IntegerRange kInvokeTimeRange{
    1, static_cast<std::uint64_t>((limits::kCommandTimeoutMax - kInvokeMargin) / milliseconds{1})};

struct Serving {
  const Worker* runtime = nullptr;
  std::vector<std::string> functions;
};

// Visits each connected runtime that knows the application, with what it says of it.
template <class Visit>
void for_each_serving(const SchedulerCore& core, const TenantId& tenant, const std::string& application_id,
                      const Visit& visit) {
  core.fleet().for_each(tenant, [&](const Worker& each) {
    if (!each.session || each.runtime == nullptr || each.is_draining) return;
    for (const RuntimeApplication& app : each.runtime->applications) {
      if (app.application_id == application_id) visit(each, app);
    }
  });
}

// The runtime with most ready workers per invocation under way.
Serving choose_serving(const SchedulerCore& core, const TenantId& tenant, const std::string& application_id) {
  Serving best;
  double best_room = 0;
  for_each_serving(core, tenant, application_id, [&](const Worker& worker, const RuntimeApplication& app) {
    for (const std::string& each : app.functions) {
      if (std::ranges::find(best.functions, each) == best.functions.end()) best.functions.push_back(each);
    }
    const double room = static_cast<double>(app.ready) / static_cast<double>(1 + app.in_flight + app.pending);
    if (app.ready == 0 || worker.state != WorkerState::Ready || room <= best_room) return;
    best.runtime = &worker;
    best_room = room;
  });
  return best;
}

// Nothing if no weight is above zero.
std::optional<std::string> weights_text(const std::map<std::string, std::uint64_t>& weights) {
  std::string text = "{";
  std::uint64_t sum = 0;
  for (const auto& [version, weight] : weights) {
    sum += weight;
    text += (text.size() > 1 ? "," : "") + json_quoted(version) + ':' + std::to_string(weight);
  }
  if (sum == 0) return std::nullopt;
  return text + '}';
}

}  // namespace

void AdminCalls::assign(AdminCall& call) {
  BodyReader body{call.request.body};
  AssignWorkers request;
  request.tenant = TenantId{call.names[0]};
  request.application_id = call.names[1];
  request.workers = static_cast<std::uint32_t>(body.integer("workers", kWorkersRange).value_or(1));
  request.runtime = body.text("runtime").value_or("");
  request.code_version = body.text("code_version").value_or("");
  request.is_partial = body.boolean("partial").value_or(false);
  request.id = body.text("id").value_or("");
  if (const auto finished = body.finish(); !finished) {
    return call.answer(to_response(problem_of(finished.error())));
  }
  ask_assignments(call, std::move(request), "assign");
}

void AdminCalls::unassign(AdminCall& call) {
  BodyReader body{call.request.body};
  UnassignWorkers request;
  request.tenant = TenantId{call.names[0]};
  request.application_id = call.names[1];
  request.code_version = body.text("code_version").value_or("");
  if (const auto workers = body.integer("workers", kWorkersRange)) {
    request.workers = static_cast<std::uint32_t>(*workers);
  }
  request.id = body.text("id").value_or("");
  if (const auto finished = body.finish(); !finished) {
    return call.answer(to_response(problem_of(finished.error())));
  }
  ask_assignments(call, std::move(request), "unassign");
}

template <class Request>
void AdminCalls::ask_assignments(AdminCall& call, Request request, std::string_view action) {
  if (refuse_any_query(call)) return;
  const TenantId tenant = request.tenant;
  const std::string application_id = request.application_id;
  control_.ask(std::move(request), [this, tenant, application_id, action,
                                    answer = std::move(call.answer)](const Reply& reply) {
    const auto* const error = std::get_if<Error>(&reply.outcome);
    note_app(action, tenant, application_id, error == nullptr ? "" : to_string(error->code));
    if (error != nullptr) {
      const bool is_known = control_.core().apps().find(tenant, application_id, {}) != nullptr;
      if (!is_known && (error->code == ErrorCode::CmdUnknown || error->code == ErrorCode::SessionUnknown)) {
        return answer(to_response(unknown_app(control_.core(), tenant, application_id)));
      }
      return answer(to_response(app_problem_of(*error)));
    }
    const auto& made = std::get<AssignmentsMade>(reply.outcome);
    answer(json_response(
        [&](codec::JsonWriter& json) {
          json.text("tenant", tenant.value());
          json.text("application_id", application_id);
          json.boolean("repeated", made.is_repeated);
          json.text_if_any("shortfall", made.shortfall);
          json.begin_list("assignments");
          for (const AssignmentRecord& each : made.assignments) {
            json.begin();
            write_assignment_members(json, each);
            json.end();
          }
          json.end_list();
        },
        202));
  });
}

void AdminCalls::split(AdminCall& call) {
  if (refuse_any_query(call)) return;
  BodyReader body{call.request.body};
  const auto weights = body.integers("weights", kWeightRange);
  const std::string metadata_version = body.text("metadata_version").value_or("");
  body.require("weights", weights.has_value());
  if (const auto finished = body.finish(); !finished) {
    return call.answer(to_response(problem_of(finished.error())));
  }
  const TenantId tenant{call.names[0]};
  const std::string& application_id = call.names[1];
  const SchedulerCore& core = control_.core();
  if (core.apps().find(tenant, application_id, {}) == nullptr) {
    return call.answer(to_response(unknown_app(core, tenant, application_id)));
  }
  for (const auto& [version, weight] : *weights) {
    if (core.apps().find(tenant, application_id, version) != nullptr && !version.empty()) continue;
    std::string detail = "application '" + application_id;
    detail.append("' has no code version '").append(version).append("'; see windlass apps");
    return call.answer(to_response({404, "E.APP.UNKNOWN", std::move(detail)}));
  }
  const auto text = weights_text(*weights);
  if (!text) {
    return call.answer(
        to_response({400, "E.PROTO.SCHEMA", "/weights: at least one of them must be above 0"}));
  }
  std::vector<WorkerKey> runtimes;
  for_each_serving(core, tenant, application_id, [&](const Worker& worker, const RuntimeApplication&) {
    if (runtimes.empty() || runtimes.back() != worker.key) runtimes.push_back(worker.key);
  });
  if (runtimes.empty()) return call.answer(to_response(no_ready_worker(core, tenant, application_id)));
  SubmitCommand command;
  command.type = "biz.runtime.split";
  command.payload = "{\"application_id\":" + json_quoted(application_id);
  if (!metadata_version.empty()) command.payload += ",\"metadata_version\":" + json_quoted(metadata_version);
  command.payload += ",\"weights\":" + *text + '}';
  submit_to_runtimes(call, runtimes, command, "split");
}

void AdminCalls::invoke(AdminCall& call) {
  if (refuse_any_query(call)) return;
  BodyReader body{call.request.body};
  const auto function = body.text("function");
  const auto data = body.any("data");
  const auto text = body.text("text");
  const auto timeout = body.integer("timeout_ms", kInvokeTimeRange);
  const auto sticky_key = body.text("sticky_key");
  const auto trace_parent = body.text("traceparent");
  SubmitCommand command;
  command.id = body.text("id").value_or("");
  body.require("function", function.has_value());
  if (const auto finished = body.finish(); !finished) {
    return call.answer(to_response(problem_of(finished.error())));
  }
  const TenantId tenant{call.names[0]};
  const std::string& application_id = call.names[1];
  const SchedulerCore& core = control_.core();
  const Serving serving = choose_serving(core, tenant, application_id);
  if (serving.runtime == nullptr) {
    const bool is_known = core.apps().find(tenant, application_id, {}) != nullptr;
    return call.answer(to_response(is_known ? no_ready_worker(core, tenant, application_id)
                                            : unknown_app(core, tenant, application_id)));
  }
  // A runtime may serve functions that it has not told yet.
  const bool is_told =
      serving.functions.empty() || std::ranges::find(serving.functions, *function) != serving.functions.end();
  if (!is_told) {
    return call.answer(to_response(unknown_function(application_id, *function, serving.functions)));
  }
  command.type = "biz.runtime.invoke";
  command.payload =
      "{\"application_id\":" + json_quoted(application_id) + ",\"function\":" + json_quoted(*function);
  if (data) command.payload += ",\"data\":" + *data;
  if (text) command.payload += ",\"text\":" + json_quoted(*text);
  if (sticky_key) command.payload += ",\"sticky_key\":" + json_quoted(*sticky_key);
  if (trace_parent) command.payload += ",\"traceparent\":" + json_quoted(*trace_parent);
  if (timeout) {
    command.payload += ",\"timeout_ms\":" + std::to_string(*timeout);
    command.timeout = milliseconds{static_cast<std::int64_t>(*timeout)} + kInvokeMargin;
  }
  command.payload += '}';
  submit_to_runtimes(call, {serving.runtime->key}, command, "invoke");
}

// One answer when all are durable; the first refusal is the answer if there is one.
void AdminCalls::submit_to_runtimes(AdminCall& call, const std::vector<WorkerKey>& runtimes,
                                    const SubmitCommand& command, std::string_view action) {
  struct Collected {
    std::size_t left = 0;
    std::optional<Error> error;
    std::vector<std::pair<WorkerKey, CommandKey>> accepted;
    HttpAnswer answer;
  };
  // Shared by the replies, which come one by one.
  const auto all = std::make_shared<Collected>();
  all->left = runtimes.size();
  all->answer = std::move(call.answer);
  const TenantId tenant{call.names[0]};
  const std::string application_id = call.names[1];
  for (const WorkerKey& runtime : runtimes) {
    SubmitCommand each = command;
    each.worker = runtime;
    control_.ask(std::move(each), [this, all, runtime, tenant, application_id, action](const Reply& reply) {
      if (const auto* error = std::get_if<Error>(&reply.outcome)) {
        if (!all->error) all->error = *error;
      } else {
        all->accepted.emplace_back(runtime, std::get<CommandAccepted>(reply.outcome).key);
      }
      if (--all->left > 0) return;
      if (action != "invoke") {
        note_app(action, tenant, application_id, all->error ? to_string(all->error->code) : "");
      }
      if (all->error) return all->answer(to_response(problem_of(*all->error)));
      all->answer(json_response(
          [&](codec::JsonWriter& json) {
            json.text("tenant", tenant.value());
            json.text("application_id", application_id);
            json.begin_list("commands");
            for (const auto& [worker, key] : all->accepted) {
              json.begin();
              json.text("id", key.id);
              json.text("runtime", worker.instance.value());
              json.end();
            }
            json.end_list();
          },
          202));
    });
  }
}

}  // namespace windlass
