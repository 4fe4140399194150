// The routes of packages, applications and runtimes.
#include <set>
#include <utility>

#include "scheduler/shell/admin_app_json.h"
#include "scheduler/shell/admin_app_problems.h"
#include "scheduler/shell/admin_calls.h"
#include "scheduler/shell/admin_json.h"
#include "scheduler/shell/package_desk.h"

namespace windlass {
namespace {

void write_progress(codec::JsonWriter& json, const std::string& digest, const PackageProgress& progress) {
  json.text("digest", digest);
  json.boolean("complete", progress.is_whole);
  json.integer("next", progress.next);
  if (progress.total > 0) json.integer("total", progress.total);
}

HttpResponse package_response(const std::string& digest, const PackageProgress& progress) {
  return json_response([&](codec::JsonWriter& json) { write_progress(json, digest, progress); });
}

}  // namespace

bool AdminCalls::refuse_without_packages(AdminCall& call) {
  if (options_.packages != nullptr) return false;
  call.answer(to_response({503, "E.PKG.NONE", "this scheduler keeps no packages"}));
  return true;
}

// Also of one that nobody brought yet: its upload begins at 0.
void AdminCalls::package(AdminCall& call) {
  if (refuse_any_query(call) || refuse_without_packages(call)) return;
  const std::string digest = call.names[0];
  options_.packages->look(digest, [digest, answer = std::move(call.answer)](PackageProgress progress) {
    answer(package_response(digest, progress));
  });
}

void AdminCalls::upload(AdminCall& call) {
  if (refuse_without_packages(call)) return;
  QueryReader query{call.target};
  PackagePiece piece{call.names[0], 0, 0, {}};
  const auto offset = query.integer("offset", {0, limits::kIntegerMax});
  const auto total = query.integer("total", {1, limits::kIntegerMax});
  if (!total) query.refuse("total", "the package's bytes are wanted");
  if (const auto finished = query.finish(); !finished) {
    return call.answer(to_response(problem_of(finished.error())));
  }
  piece.offset = offset.value_or(0);
  piece.total = *total;
  piece.bytes = std::move(call.request.body);
  const std::string digest = piece.digest;
  options_.packages->put(
      std::move(piece), [this, digest, who = call.request.token_name,
                         answer = std::move(call.answer)](const Result<PackageProgress>& progress) {
        // One line for all of its pieces.
        const std::string_view code = progress ? std::string_view{} : to_string(progress.error().code);
        if (!progress || progress->is_whole) note(who, {.action = "upload", .package = digest, .code = code});
        if (!progress) return answer(to_response(app_problem_of(progress.error())));
        answer(package_response(digest, *progress));
      });
}

void AdminCalls::apps(AdminCall& call) {
  QueryReader query{call.target};
  std::optional<TenantId> tenant;
  if (auto name = query.text("tenant")) tenant = TenantId{std::move(*name)};
  if (const auto finished = query.finish(); !finished) {
    return call.answer(to_response(problem_of(finished.error())));
  }
  const SchedulerCore& core = control_.core();
  std::set<std::pair<TenantId, std::string>> names;
  core.apps().for_each_app([&](const AppRecord& each) {
    if (!tenant || each.key.tenant == *tenant) names.emplace(each.key.tenant, each.key.application_id);
  });
  call.answer(json_response([&](codec::JsonWriter& json) {
    json.begin_list("apps");
    for (const auto& [owner, application_id] : names)
      write_app(json, owner, application_id, core, AppDetail::Listed);
    json.end_list();
  }));
}

void AdminCalls::app(AdminCall& call) {
  if (refuse_any_query(call)) return;
  const TenantId tenant{call.names[0]};
  if (control_.core().apps().find(tenant, call.names[1], {}) == nullptr) {
    return call.answer(to_response(unknown_app(control_.core(), tenant, call.names[1])));
  }
  HttpResponse response{200, "application/json", {}, {}};
  {
    codec::JsonWriter json{response.body};
    write_app(json, tenant, call.names[1], control_.core(), AppDetail::Whole);
    json.finish();
  }
  response.body += '\n';
  call.answer(std::move(response));
}

void AdminCalls::deploy(AdminCall& call) {
  if (refuse_any_query(call) || refuse_without_packages(call)) return;
  BodyReader body{call.request.body};
  DeployApp request;
  AppRecord& app = request.app;
  app.key = {TenantId{call.names[0]}, call.names[1], body.text("code_version").value_or("")};
  app.metadata_version = body.text("metadata_version").value_or("");
  app.language = body.text("language").value_or("");
  app.digest = body.text("digest").value_or("");
  using Changes = std::map<std::string, std::optional<std::string>>;
  for (auto& [name, value] : body.texts_or_nulls("settings").value_or(Changes{})) {
    if (value) {
      app.settings.emplace(name, *std::move(value));
    } else {
      request.unset.insert(name);
    }
  }
  body.require("code_version", !app.key.code_version.empty());
  body.require("metadata_version", !app.metadata_version.empty());
  body.require("language", !app.language.empty());
  body.require("digest", !app.digest.empty());
  if (const auto finished = body.finish(); !finished) {
    return call.answer(to_response(problem_of(finished.error())));
  }
  const std::string digest = app.digest;
  options_.packages->look(digest, [this, request = std::move(request), who = call.request.token_name,
                                   answer = std::move(call.answer)](PackageProgress progress) mutable {
    const AppKey key = request.app.key;
    if (!progress.is_whole) {
      return answer(to_response({409, "E.PKG.MISSING",
                                 "the package '" + request.app.digest +
                                     "' is not here; upload all of it with PUT /v1/packages first"}));
    }
    request.app.bytes = progress.total;
    control_.ask(std::move(request), [this, key, who, answer = std::move(answer)](const Reply& reply) {
      const auto* const error = std::get_if<Error>(&reply.outcome);
      note_app(who, "deploy", key.tenant, key.application_id, error == nullptr ? "" : to_string(error->code));
      metrics_.package_operation(key.tenant.value(), "deploy", error == nullptr);
      if (error != nullptr) return answer(to_response(app_problem_of(*error)));
      answer(json_response([&](codec::JsonWriter& json) {
        json.text("tenant", key.tenant.value());
        json.text("application_id", key.application_id);
        json.text("code_version", key.code_version);
      }));
    });
  });
}

void AdminCalls::undeploy(AdminCall& call) {
  QueryReader query{call.target};
  UndeployApp request{{}, TenantId{call.names[0]}, call.names[1], query.text("code_version").value_or("")};
  if (const auto finished = query.finish(); !finished) {
    return call.answer(to_response(problem_of(finished.error())));
  }
  const TenantId tenant = request.tenant;
  const std::string application_id = request.application_id;
  control_.ask(std::move(request), [this, tenant, application_id, who = call.request.token_name,
                                    answer = std::move(call.answer)](const Reply& reply) {
    const auto* const error = std::get_if<Error>(&reply.outcome);
    note_app(who, "undeploy", tenant, application_id, error == nullptr ? "" : to_string(error->code));
    metrics_.package_operation(tenant.value(), "undeploy", error == nullptr);
    if (error != nullptr) return answer(to_response(app_problem_of(*error)));
    answer(json_response([&](codec::JsonWriter& json) {
      json.text("tenant", tenant.value());
      json.text("application_id", application_id);
      json.text("accepted", "undeploy");
    }));
  });
}

void AdminCalls::runtimes(AdminCall& call) {
  QueryReader query{call.target};
  std::optional<TenantId> tenant;
  if (auto name = query.text("tenant")) tenant = TenantId{std::move(*name)};
  if (const auto finished = query.finish(); !finished) {
    return call.answer(to_response(problem_of(finished.error())));
  }
  call.answer(json_response([&](codec::JsonWriter& json) {
    json.begin_list("runtimes");
    control_.core().fleet().for_each(tenant, [&](const Worker& each) {
      if (each.role == Role::Runtime) write_runtime(json, each);
    });
    json.end_list();
  }));
}

}  // namespace windlass
