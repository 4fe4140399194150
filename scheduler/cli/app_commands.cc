#include "scheduler/cli/app_commands.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "protocol/crypto/percent_encoding.h"
#include "scheduler/cli/table.h"

namespace windlass::cli {
namespace {

std::string joined(const std::vector<Json>& texts, std::size_t count_max) {
  std::string text;
  for (std::size_t i = 0; i < texts.size() && i < count_max; ++i)
    text += (i == 0 ? "" : ",") + texts[i].text("");
  return texts.size() > count_max ? text + ",..." : text;
}

std::string with_tenant(std::string target, const std::string& tenant) {
  return tenant.empty() ? target : target + "?tenant=" + percent_encode(tenant);
}

std::string size_text(double bytes) {
  if (bytes < 10'000) return std::to_string(static_cast<std::uint64_t>(bytes)) + " B";
  if (bytes < 10'000'000) return std::to_string(static_cast<std::uint64_t>(bytes / 1024)) + " KiB";
  return std::to_string(static_cast<std::uint64_t>(bytes / 1024 / 1024)) + " MiB";
}

// "2 ready, 1 pending".
std::string workers_of(const Json& app, const std::string& code_version) {
  std::map<std::string, int> counts;
  for (const Json& each : app.list("/assignments")) {
    if (each.text("/code_version") == code_version) ++counts[each.text("/state")];
  }
  std::string text;
  for (const auto& [state, count] : counts)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + ' ' + state;
  return text;
}

// "r-1:2,r-2:1": the ready workers of one version at each runtime that has any of it.
std::string runtimes_of(const Json& app, const std::string& code_version) {
  std::string text;
  for (const Json& runtime : app.list("/runtimes")) {
    const auto versions = runtime.list("/code_versions");
    const bool has_it =
        std::ranges::any_of(versions, [&](const Json& e) { return e.text("") == code_version; });
    if (!has_it) continue;
    // A runtime counts all of an application's workers together.
    std::string ready = runtime.text("/ready");
    if (versions.size() > 1) {
      const auto assignments = app.list("/assignments");
      ready = std::to_string(std::ranges::count_if(assignments, [&](const Json& each) {
        return each.text("/code_version") == code_version && each.text("/state") == "ready" &&
               each.text("/runtime") == runtime.text("/id");
      }));
    }
    text += (text.empty() ? "" : ",") + runtime.text("/id") + ':' + ready;
  }
  return text;
}

}  // namespace

std::string given_tenant(const std::string& option) {
  if (!option.empty()) return option;
  const char* const environment = std::getenv("WINDLASS_TENANT");
  return environment == nullptr ? std::string{} : std::string{environment};
}

AppLookup find_app(Admin& admin, const AppName& app) {
  const std::size_t slash = app.text.find('/');
  if (slash != std::string::npos) {
    auto name = parse_name(app.text);
    return {name, name ? kExitOk : kExitUsage};
  }
  if (const std::string tenant = given_tenant(app.tenant); !tenant.empty()) return {Name{tenant, app.text}};
  const auto apps = admin.ask({.target = "/v1/apps"});
  if (!apps) return {std::nullopt, admin.exit_code()};
  std::set<std::string> tenants;
  std::set<std::string> names;
  for (const Json& each : apps->list("/apps")) {
    names.insert(each.text("/application_id"));
    if (each.text("/application_id") == app.text) tenants.insert(each.text("/tenant"));
  }
  if (tenants.size() == 1) return {Name{*tenants.begin(), app.text}};
  if (tenants.size() > 1) {
    complain("several tenants have an application '" + app.text + "'; write TENANT/" + app.text);
    return {std::nullopt, kExitUsage};
  }
  std::string known;
  for (const std::string& each : names) known += (known.empty() ? "" : ", ") + each;
  complain("no application '" + app.text + "' is deployed" +
           (known.empty() ? "; see windlass deploy" : "; there are: " + known));
  return {std::nullopt, kExitRefused};
}

int list_apps(Admin& admin, const std::string& tenant) {
  const auto answer = admin.ask({.target = with_tenant("/v1/apps", given_tenant(tenant))});
  if (!answer) return admin.exit_code();
  if (admin.wants_json()) {
    print(admin.body());
    return kExitOk;
  }
  Table table{{"TENANT", "APP", "CODE", "METADATA", "LANGUAGE", "WORKERS", "RUNTIMES", "SETTINGS", "SIZE",
               "DEPLOYED"}};
  for (const Json& app : answer->list("/apps")) {
    for (const Json& version : app.list("/versions")) {
      const std::string code = version.text("/code_version");
      table.add({app.text("/tenant"), app.text("/application_id"),
                 code + (version.text("/newest") == "true" ? " *" : ""), version.text("/metadata_version"),
                 version.text("/language"), workers_of(app, code), runtimes_of(app, code),
                 joined(version.list("/settings"), 4), size_text(version.number("/bytes")),
                 age_of(version.text("/deployed_at"))});
    }
  }
  print(table.size() == 0 ? "no applications; see windlass deploy --help\n" : table.text());
  return kExitOk;
}

int show_app(Admin& admin, const AppName& named) {
  const AppLookup found = find_app(admin, named);
  if (!found.name) return found.exit_code;
  const auto app = admin.ask({.target = "/v1/apps/" + found.name->path()});
  if (!app) return admin.exit_code();
  if (admin.wants_json()) {
    print(admin.body());
    return kExitOk;
  }
  const std::string active = app->text("/active_metadata_version");
  std::map<std::string, std::string> settings_versions;  // by code version
  std::string stopped;
  Table versions{
      {"CODE", "METADATA", "SERVES", "WEIGHT", "LANGUAGE", "SETTINGS", "VERSION", "SIZE", "DEPLOYED"}};
  for (const Json& each : app->list("/versions")) {
    const std::string code = each.text("/code_version");
    const std::string metadata = each.text("/metadata_version");
    settings_versions[code] = each.text("/settings_version");
    if (const std::string why = each.text("/rollout_stopped"); !why.empty()) {
      stopped += code + ": settings rollout stopped: " + printable(why) + "; deploy again\n";
    }
    versions.add({code + (each.text("/newest") == "true" ? " *" : ""), metadata,
                  !active.empty() && metadata == active ? "yes" : "no", each.text("/weight"),
                  each.text("/language"), joined(each.list("/settings"), 1000),
                  each.text("/settings_version"), size_text(each.number("/bytes")),
                  age_of(each.text("/deployed_at"))});
  }
  Table workers{{"WORKER", "RUNTIME", "CODE", "STATE", "SETTINGS", "SINCE", "REASON"}};
  for (const Json& each : app->list("/assignments")) {
    const std::string settings = each.text("/settings_version");
    const bool is_old = settings != settings_versions[each.text("/code_version")];
    workers.add({each.text("/worker"), each.text("/runtime"), each.text("/code_version"),
                 each.text("/state") + (each.text("/owed") == "true" ? " (place open)" : ""),
                 settings + (is_old ? " (old)" : ""), age_of(each.text("/since")), each.text("/reason")});
  }
  std::set<std::string> warnings;  // several runtimes say the same
  for (const Json& runtime : app->list("/runtimes")) {
    for (const Json& each : runtime.list("/warnings")) warnings.insert(each.text(""));
  }
  print(printable(found.name->tenant + '/' + found.name->id) + ": " + app->text("/workers/ready") + " of " +
        app->text("/workers/wanted") + " workers ready\n" + stopped + '\n' + versions.text() + "\n" +
        (workers.size() == 0 ? "no workers; see windlass assign --help\n" : workers.text()));
  const auto failures = app->list("/load_failures");
  if (!warnings.empty() || !failures.empty()) print("\n");
  for (const Json& each : failures) {
    const std::string reason = each.text("/reason");
    print(printable(each.text("/code_version") + ": function '" + each.text("/function") +
                    "' could not be loaded" + (reason.empty() ? "" : ": " + reason)) +
          '\n');
  }
  for (const std::string& each : warnings) print("warning: " + printable(each) + '\n');
  return kExitOk;
}

int list_runtimes(Admin& admin, const std::string& tenant) {
  const auto answer = admin.ask({.target = with_tenant("/v1/runtimes", given_tenant(tenant))});
  if (!answer) return admin.exit_code();
  if (admin.wants_json()) {
    print(admin.body());
    return kExitOk;
  }
  Table table{{"TENANT", "ID", "STATE", "HEALTH", "APPS", "WORKERS", "IN FLIGHT", "URL", "HTTP", "SINCE"}};
  for (const Json& each : answer->list("/runtimes")) {
    std::string apps;
    for (const Json& app : each.list("/applications")) {
      apps += (apps.empty() ? "" : ",") + app.text("/application_id") + ':' + app.text("/ready");
    }
    table.add({each.text("/tenant"), each.text("/id"), each.text("/state"), each.text("/health"), apps,
               each.text("/workers"), each.text("/in_flight"), each.text("/url"), each.text("/http"),
               age_of(each.text("/since"))});
  }
  print(table.size() == 0 ? "no runtimes\n" : table.text());
  return kExitOk;
}

int undeploy_app(Admin& admin, const UndeployOptions& options) {
  const AppLookup app = find_app(admin, options.app);
  if (!app.name) return app.exit_code;
  if (options.force) {
    const auto facts = admin.ask({.target = "/v1/apps/" + app.name->path()});
    if (!facts) return admin.exit_code();
    const auto assignments = facts->list("/assignments");
    const bool is_assigned = std::ranges::any_of(assignments, [&](const Json& each) {
      const bool is_of_it =
          options.code_version.empty() || each.text("/code_version") == options.code_version;
      return is_of_it && each.text("/wanted") == "true";
    });
    if (is_assigned) {
      AssignOptions unassign;
      unassign.app.text = app.name->tenant + '/' + app.name->id;
      unassign.code_version = options.code_version;
      if (const int code = unassign_workers(admin, unassign); code != kExitOk) return code;
    }
  }
  std::string target = "/v1/apps/" + app.name->path();
  if (!options.code_version.empty()) target += "?code_version=" + percent_encode(options.code_version);
  if (!admin.ask({.method = "DELETE", .target = target})) return admin.exit_code();
  print(admin.wants_json() ? admin.body()
                           : "undeployed: " + printable(app.name->tenant + '/' + app.name->id) + '\n');
  return kExitOk;
}

}  // namespace windlass::cli
