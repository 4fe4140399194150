// windlass-agent: reads settings, then runs the agent until it is told to stop.
#include <sys/stat.h>

#include <csignal>
#include <cstdio>
#include <mutex>

#include "protocol/shell/command_line.h"
#include "protocol/shell/signals.h"
#include "worker-agent/adapters/confinement_probe.h"
#include "worker-agent/shell/agent.h"

int main(int argc, char** argv) {
  using namespace windlass;
  ::umask(077);  // whatever this makes is nobody else's
  const CommandLineOptions options = agent::command_line_options();
  const CommandLine line = parse_command_line(options, argc, argv);
  if (line.exit_code) return *line.exit_code;
  auto [settings, problems] = agent::read_settings(
      {.file = line.config_file, .environment = windlass_environment(), .flags = line.flags});
  if (!problems.empty()) {
    print_problems(options.program, problems);
    return kExitBadConfiguration;
  }
  if (line.check_config) {
    if (const auto checked = agent::check_files(settings); !checked) {
      print_problems(options.program, {checked.error().reason});
      return kExitBadConfiguration;
    }
    std::puts("the settings are good");
    return kExitOk;
  }
  agent::shut_own_memory();
  auto log = JsonLog::open(settings.log);
  if (!log) {
    print_problems(options.program, {log.error().reason});
    return kExitBadConfiguration;
  }
  // Made before any thread, so that all inherit the blocked mask; signals count once the agent stands.
  std::mutex mutex;
  agent::Agent* running = nullptr;
  int stops = 0;
  Signals signals{{SIGTERM, SIGINT, SIGHUP}, [&](int signal) {
                    const std::lock_guard lock{mutex};
                    if (signal != SIGHUP && running == nullptr) ++stops;
                    if (running == nullptr) return;
                    signal == SIGHUP ? running->reload() : running->stop();
                  }};
  auto agent = agent::Agent::open(std::move(settings), **log);
  if (!agent) {
    print_problems(options.program, {agent.error().reason});
    return exit_code_of(agent.error());
  }
  {
    const std::lock_guard lock{mutex};
    running = agent->get();
    for (; stops > 0; --stops) running->stop();
  }
  const int exit_code = (*agent)->run();
  const std::lock_guard lock{mutex};
  running = nullptr;
  return exit_code;
}
