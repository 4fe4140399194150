// The routes of workers: who is there, and what operators do to them.
#include <utility>

#include "protocol/base/limits.h"
#include "protocol/crypto/percent_encoding.h"
#include "scheduler/shell/admin_calls.h"
#include "scheduler/shell/admin_json.h"

namespace windlass {
namespace {

constexpr std::uint64_t kIntervalMillisecondsMax =
    static_cast<std::uint64_t>(limits::kIntervalMax / milliseconds{1});

// "tenant/id" of the last worker of a page, with escapes, as the next page is asked for.
std::string cursor_of(const WorkerKey& key) {
  return percent_encode(key.tenant.value()) + '/' + percent_encode(key.instance.value());
}

std::optional<WorkerKey> worker_key_from(const std::string& cursor) {
  const auto target = parse_target('/' + cursor);
  if (!target || target->path.size() != 2 || !target->query.empty()) return std::nullopt;
  return WorkerKey{TenantId{target->path[0]}, InstanceId{target->path[1]}};
}

}  // namespace

void AdminCalls::workers(AdminCall& call) {
  QueryReader query{call.target};
  std::optional<TenantId> tenant;
  if (auto name = query.text("tenant")) tenant = TenantId{std::move(*name)};
  const std::uint64_t limit = query.integer("limit", {1, limits::kAdminPageMax}).value_or(limits::kAdminPage);
  std::optional<WorkerKey> after;
  if (const auto cursor = query.text("after")) {
    after = worker_key_from(*cursor);
    if (!after) query.refuse("after", "the value of 'next' in the page before is wanted");
  }
  if (const auto finished = query.finish(); !finished) {
    return call.answer(to_response(problem_of(finished.error())));
  }

  const SchedulerCore& core = control_.core();
  std::size_t total = 0;
  std::size_t shown = 0;
  std::string last;
  bool is_more = false;
  call.answer(json_response([&](codec::JsonWriter& json) {
    json.begin_list("workers");
    core.fleet().for_each(tenant, [&](const Worker& worker) {
      ++total;
      if (after && worker.key <= *after) return;
      if (shown == limit) {
        is_more = true;
        return;
      }
      ++shown;
      last = cursor_of(worker.key);
      write_worker(json, worker, core, Detail::Short);
    });
    json.end_list();
    json.integer("total", total);
    if (is_more) json.text("next", last);
  }));
}

void AdminCalls::worker(AdminCall& call) {
  if (refuse_any_query(call)) return;
  const WorkerKey key = call.worker();
  const Worker* const worker = control_.core().fleet().find(key);
  if (worker == nullptr) {
    return call.answer(
        to_response({404, "E.SESSION.UNKNOWN",
                     "no worker '" + key.instance.value() + "' of tenant '" + key.tenant.value() +
                         "' is known; run 'windlass workers' to list the known ones"}));
  }
  HttpResponse response{200, "application/json", {}, {}};
  {
    codec::JsonWriter json{response.body};
    write_worker(json, *worker, control_.core(), Detail::Full);
    json.finish();
  }
  response.body += '\n';
  call.answer(std::move(response));
}

void AdminCalls::drain(AdminCall& call) {
  BodyReader body{call.request.body};
  DrainWorker request;
  request.worker = call.worker();
  request.reason = body.text("reason").value_or("an operator asked for it");
  const auto deadline = body.integer("deadline_ms", {1, kIntervalMillisecondsMax});
  request.deadline =
      deadline ? Duration{milliseconds{static_cast<std::int64_t>(*deadline)}} : limits::kDrainDeadline;
  if (const auto finished = body.finish(); !finished) {
    return call.answer(to_response(problem_of(finished.error())));
  }
  ask(call, std::move(request), "drain");
}

void AdminCalls::reset(AdminCall& call) {
  BodyReader body{call.request.body};
  ResetWorker request;
  request.worker = call.worker();
  request.reason = body.text("reason").value_or("an operator asked for it");
  if (const auto finished = body.finish(); !finished) {
    return call.answer(to_response(problem_of(finished.error())));
  }
  ask(call, std::move(request), "reset");
}

template <class Request>
void AdminCalls::act(AdminCall& call, std::string_view action) {
  const BodyReader body{call.request.body};
  if (const auto finished = body.finish(); !finished) {
    return call.answer(to_response(problem_of(finished.error())));
  }
  ask(call, Request{{}, call.worker()}, action);
}

void AdminCalls::revoke(AdminCall& call) {
  act<RevokeWorker>(call, "revoke");
}

void AdminCalls::allow(AdminCall& call) {
  act<AllowWorker>(call, "allow");
}

void AdminCalls::resume(AdminCall& call) {
  act<ResumeWorker>(call, "resume");
}

void AdminCalls::denied(AdminCall& call) {
  QueryReader query{call.target};
  const auto tenant = query.text("tenant");
  if (const auto finished = query.finish(); !finished) {
    return call.answer(to_response(problem_of(finished.error())));
  }
  call.answer(json_response([&](codec::JsonWriter& json) {
    json.begin_list("denied");
    control_.core().denials().for_each_durable([&](const std::string&, const Denial& denial) {
      if (tenant && denial.worker.tenant.value() != *tenant) return;
      write_denial(json, denial);
    });
    json.end_list();
  }));
}

void AdminCalls::rotate(AdminCall& call) {
  act<RotateToken>(call, "rotate");
}

template <class Request>
void AdminCalls::ask(AdminCall& call, Request request, std::string_view action) {
  if (refuse_any_query(call)) return;
  const WorkerKey key = request.worker;
  control_.ask(std::move(request), [this, key, action, who = call.request.token_name,
                                    answer = std::move(call.answer)](const Reply& reply) {
    const auto line = [&](std::string_view code) {
      return AuditLine{
          .action = action, .tenant = key.tenant.value(), .sender_id = key.instance.value(), .code = code};
    };
    if (const auto* error = std::get_if<Error>(&reply.outcome)) {
      note(who, line(to_string(error->code)));
      Problem problem = problem_of(*error);
      // A worker that was never here is not found; one that is gone only has nothing to act upon.
      const bool is_known = control_.core().fleet().find(key) != nullptr;
      if (error->code == ErrorCode::SessionUnknown && !is_known) problem.status = 404;
      return answer(to_response(problem));
    }
    note(who, line({}));
    answer(json_response(
        [&](codec::JsonWriter& json) {
          json.text("tenant", key.tenant.value());
          json.text("id", key.instance.value());
          json.text("accepted", action);
        },
        202));
  });
}

}  // namespace windlass
