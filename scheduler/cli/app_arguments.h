// The command line of everything about applications.
#pragma once

#include <functional>

#include "scheduler/cli/app_commands.h"

namespace CLI {
class App;
}

namespace windlass::cli {

// What the command line fills in; must live as long as the parser.
struct AppArguments {
  std::string tenant = {};
  AppName show = {};
  DeployOptions deploy = {};
  UndeployOptions undeploy = {};
  AssignOptions assign = {};
  std::uint64_t workers = 0;
  SplitOptions split = {};
  InvokeOptions invoke = {};
  std::string data = {};
  std::string text = {};
  double timeout_s = 0;
};

// The chosen command is put into `run`.
void add_app_commands(CLI::App& app, AppArguments& arguments, const Settings& settings,
                      std::function<int()>& run);

}  // namespace windlass::cli
