// What the subcommands about applications do; each returns the exit code. app_arguments.cc reads their
// command lines.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/cli/admin.h"

namespace windlass::cli {

// APP or TENANT/APP. Without a tenant it is --tenant, WINDLASS_TENANT, or the only tenant that has deployed
// such an application. Complains and gives nothing when that is nobody or several; admin.exit_code() then
// holds.
struct AppName {
  std::string text = {};
  std::string tenant = {};
};
struct AppLookup {
  std::optional<Name> name;
  int exit_code = kExitOk;
};
AppLookup find_app(Admin& admin, const AppName& app);
// --tenant or WINDLASS_TENANT; empty: neither.
std::string given_tenant(const std::string& option);

// app_commands.cc
int list_apps(Admin& admin, const std::string& tenant);
int show_app(Admin& admin, const AppName& app);
int list_runtimes(Admin& admin, const std::string& tenant);
struct UndeployOptions {
  AppName app = {};
  std::string code_version = {};
  bool force = false;
};
int undeploy_app(Admin& admin, const UndeployOptions& options);

// deploy_command.cc
struct DeployOptions {
  std::string path = {};  // folder or zip
  AppName app = {};       // empty: after the path
  std::string code_version = {};
  std::string metadata_version = {};
  std::string language = {};
  std::vector<std::string> settings = {};  // NAME=VALUE, or NAME: from the environment
  std::string settings_file = {};
  std::vector<std::string> unset = {};  // names of settings to remove
  std::string keep_zip = {};            // also written here
  bool dry_run = false;
};
int deploy_app(Admin& admin, const DeployOptions& options);

// assign_commands.cc
struct AssignOptions {
  AppName app = {};
  std::optional<std::uint64_t> workers = std::nullopt;
  std::string runtime = {};
  std::string code_version = {};
  bool partial = false;
  bool no_wait = false;
  std::uint64_t wait_s = 120;
  std::string id = {};
};
int assign_workers(Admin& admin, const AssignOptions& options);
int unassign_workers(Admin& admin, const AssignOptions& options);
struct SplitOptions {
  AppName app = {};
  std::vector<std::string> weights = {};  // VERSION=WEIGHT
  std::uint64_t wait_s = 30;
};
int split_traffic(Admin& admin, const SplitOptions& options);

// invoke_command.cc
struct InvokeOptions {
  AppName app = {};
  std::string function = {};
  std::optional<std::string> data = std::nullopt;  // JSON, @FILE or -
  std::optional<std::string> text = std::nullopt;
  std::string file = {};
  std::optional<double> timeout_s = std::nullopt;
  std::string id = {};
  bool stack = false;
};
int invoke_function(Admin& admin, const InvokeOptions& options);

// Asks until the command has its outcome or the time is over; nothing after a refusal.
std::optional<Json> wait_for_command(Admin& admin, const Name& name, double wait_s);

}  // namespace windlass::cli
