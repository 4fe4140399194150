// The routes that make workers run an application, share its traffic, and call it. Each becomes commands of
// the outbox, which outlive this process.
#include <algorithm>
#include <memory>
#include <tuple>
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
  const Worker* unheard = nullptr;  // got a ready worker after it last spoke, so what it has is not known yet
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

// The runtime with most ready workers per invocation under way, of those that are fit if any is. One whose
// workers are all cut off for the moment is better than none: there the invocation waits for their resume.
Serving choose_serving(const SchedulerCore& core, const TenantId& tenant, const std::string& application_id) {
  Serving best;
  std::tuple<bool, bool, double> best_rank{false, false, 0};
  const ActiveVersion* const active = core.apps().active(tenant, application_id);
  for_each_serving(core, tenant, application_id, [&](const Worker& worker, const RuntimeApplication& app) {
    if (active != nullptr && app.metadata_version != active->metadata_version) return;
    for (const std::string& each : app.functions) {
      if (std::ranges::find(best.functions, each) == best.functions.end()) best.functions.push_back(each);
    }
    const std::uint64_t workers = app.ready > 0 ? app.ready : app.detached;
    const double room = static_cast<double>(workers) / static_cast<double>(1 + app.in_flight + app.pending);
    const std::tuple rank{unfitness_of(worker).empty(), app.ready > 0, room};
    const bool can_take = worker.state == WorkerState::Ready && worker.is_connected() && workers > 0;
    if (!can_take || rank <= best_rank) return;
    best.runtime = &worker;
    best_rank = rank;
  });
  core.apps().for_each_assignment([&](const AssignmentRecord& each) {
    const bool is_its = each.worker.tenant == tenant && each.application_id == application_id;
    if (!is_its || each.state != AssignmentState::Ready) return;
    const Worker* const runtime = core.fleet().find(WorkerKey{tenant, InstanceId{each.runtime}});
    const bool takes_orders = runtime != nullptr && runtime->session &&
                              runtime->state == WorkerState::Ready && !runtime->is_draining &&
                              runtime->runtime != nullptr;
    if (takes_orders && runtime->runtime->at <= each.since) best.unheard = runtime;
  });
  return best;
}

HttpResponse commands_response(const TenantId& tenant, const std::string& application_id,
                               const std::vector<std::pair<WorkerKey, CommandKey>>& accepted) {
  return json_response(
      [&](codec::JsonWriter& json) {
        json.text("tenant", tenant.value());
        json.text("application_id", application_id);
        json.begin_list("commands");
        for (const auto& [worker, key] : accepted) {
          json.begin();
          json.text("id", key.id);
          json.text("runtime", worker.instance.value());
          json.end();
        }
        json.end_list();
      },
      202);
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
  control_.ask(std::move(request), [this, tenant, application_id, action, who = call.request.token_name,
                                    answer = std::move(call.answer)](const Reply& reply) {
    const auto* const error = std::get_if<Error>(&reply.outcome);
    note_app(who, action, tenant, application_id, error == nullptr ? "" : to_string(error->code));
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
            write_assignment_members(json, each, to_string(each.state));
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
  const AppRecord* const named =
      weights->empty() ? nullptr : core.apps().find(tenant, application_id, weights->begin()->first);
  if (named != nullptr && !metadata_version.empty() && metadata_version != named->metadata_version) {
    return call.answer(to_response({400, "E.PROTO.SCHEMA",
                                    "/metadata_version: code version '" + named->key.code_version +
                                        "' is deployed with '" + named->metadata_version + "'"}));
  }
  SubmitCommand command;
  command.type = kSplitType;
  std::string metadata = named == nullptr ? std::string{} : named->metadata_version;
  command.payload = split_payload(application_id, metadata, *weights);
  SplitApp request{{}, tenant, application_id, *weights};
  control_.ask(std::move(request), [this, command = std::move(command), metadata = std::move(metadata),
                                    call = std::move(call)](const Reply& reply) mutable {
    const TenantId owner{call.names[0]};
    if (const auto* error = std::get_if<Error>(&reply.outcome)) {
      note_app(call.request.token_name, "split", owner, call.names[1], to_string(error->code));
      return call.answer(to_response(app_problem_of(*error)));
    }
    // Those that serve it by now; whoever comes later is told by the core.
    std::vector<WorkerKey> runtimes;
    for_each_serving(control_.core(), owner, call.names[1],
                     [&](const Worker& worker, const RuntimeApplication& app) {
                       if (app.metadata_version == metadata) runtimes.push_back(worker.key);
                     });
    submit_to_runtimes(call, runtimes, command, "split");
  });
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
  command.type = kInvokeType;
  command.target = {CommandTarget::Kind::Serving, application_id};
  if (const Command* const known = core.outbox().find(CommandKey{tenant, command.id});
      known != nullptr && known->record.type == kInvokeType) {
    // Whoever was asked then has the answer, or will; who would be asked now does not matter.
    command.worker = known->record.worker_key();
    command.target = known->record.target;  // one of an earlier version has a runtime for target
  } else {
    const Serving serving = choose_serving(core, tenant, application_id);
    const bool is_told = std::ranges::find(serving.functions, *function) != serving.functions.end();
    const Worker* const runtime = serving.unheard != nullptr && (serving.runtime == nullptr || !is_told)
                                      ? serving.unheard
                                      : serving.runtime;
    const auto refuse = [&](const Problem& problem) {
      note(call.request.token_name, {.action = "invoke",
                                     .tenant = tenant.value(),
                                     .application = application_id,
                                     .function = *function,
                                     .code = problem.code});
      call.answer(to_response(problem));
    };
    if (runtime == nullptr) {
      const bool is_known = core.apps().find(tenant, application_id, {}) != nullptr;
      return refuse(is_known ? no_ready_worker(core, tenant, application_id)
                             : unknown_app(core, tenant, application_id));
    }
    // A runtime may serve functions that it has not told yet.
    if (!is_told && runtime != serving.unheard && !serving.functions.empty()) {
      return refuse(unknown_function(application_id, *function, serving.functions));
    }
    command.worker = runtime->key;
  }
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
  submit_to_runtimes(call, {command.worker}, command, "invoke", *function);
}

// One answer when all are durable; the first refusal is the answer if there is one.
void AdminCalls::submit_to_runtimes(AdminCall& call, const std::vector<WorkerKey>& runtimes,
                                    const SubmitCommand& command, std::string_view action,
                                    const std::string& function) {
  struct Collected {
    std::size_t left = 0;
    std::optional<Error> error;
    std::vector<std::pair<WorkerKey, CommandKey>> accepted;
    HttpAnswer answer;
    std::string who;
  };
  // Shared by the replies, which come one by one.
  const auto all = std::make_shared<Collected>();
  all->left = runtimes.size();
  all->answer = std::move(call.answer);
  all->who = call.request.token_name;
  const TenantId tenant{call.names[0]};
  const std::string application_id = call.names[1];
  if (runtimes.empty()) {
    note_app(all->who, action, tenant, application_id, {});
    return all->answer(commands_response(tenant, application_id, {}));
  }
  for (const WorkerKey& runtime : runtimes) {
    SubmitCommand each = command;
    each.worker = runtime;
    control_.ask(
        std::move(each), [this, all, runtime, tenant, application_id, action, function](const Reply& reply) {
          if (const auto* error = std::get_if<Error>(&reply.outcome)) {
            if (!all->error) all->error = *error;
          } else {
            all->accepted.emplace_back(runtime, std::get<CommandAccepted>(reply.outcome).key);
          }
          if (--all->left > 0) return;
          note(all->who, {.action = action,
                          .tenant = tenant.value(),
                          .application = application_id,
                          .function = function,
                          .id = all->accepted.size() == 1 ? all->accepted[0].second.id : std::string_view{},
                          .code = all->error ? to_string(all->error->code) : ""});
          if (all->error) return all->answer(to_response(problem_of(*all->error)));
          all->answer(commands_response(tenant, application_id, all->accepted));
        });
  }
}

}  // namespace windlass
