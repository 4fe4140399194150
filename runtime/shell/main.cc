// windlass-runtime: reads settings, then runs the runtime until it is told to stop.
#include <sys/stat.h>

#include <csignal>
#include <cstdio>
#include <mutex>

#include "protocol/shell/command_line.h"
#include "protocol/shell/signals.h"
#include "runtime/shell/runtime.h"

using namespace windlass;

int main(int argc, char** argv) {
  ::umask(077);  // whatever this makes is nobody else's
  const CommandLineOptions options = runtime::runtime_command_line();
  const auto fail = [&](const Error& error) {
    print_problems(options.program, {error.reason});
    return exit_code_of(error);
  };
  const CommandLine line = parse_command_line(options, argc, argv);
  if (line.exit_code) return *line.exit_code;
  auto [config, problems] = runtime::read_runtime_config(
      {.file = line.config_file, .environment = windlass_environment(), .flags = line.flags});
  if (!problems.empty()) {
    print_problems(options.program, problems);
    return kExitBadConfiguration;
  }
  if (line.check_config) {
    if (const auto checked = runtime::check_files(config); !checked) return fail(checked.error());
    std::puts("the settings are good");
    return kExitOk;
  }
  auto log = JsonLog::open(config.log);
  if (!log) return fail(log.error());
  // One that stands alone serves many tenants: there each line about an agent names its own.
  (*log)->set_common({{"runtime", config.id}, {"tenant", config.scheduler ? config.scheduler->tenant : ""}});

  runtime::Runtime* running = nullptr;
  // Made before any thread, so that all inherit the blocked mask; signals count once the runtime stands.
  std::mutex mutex;
  bool is_pending = false;
  Signals signals{{SIGTERM, SIGINT, SIGHUP}, [&](int signal) {
                    const std::lock_guard lock{mutex};
                    if (running == nullptr) {
                      is_pending = is_pending || signal != SIGHUP;
                    } else if (signal == SIGHUP) {
                      running->reload();
                    } else {
                      running->stop();
                    }
                  }};
  auto made = runtime::Runtime::create(std::move(config), **log);
  if (!made) return fail(made.error());
  {
    const std::lock_guard lock{mutex};
    running = made->get();
    if (is_pending) running->stop();
  }
  (*log)->info("listening", {{"port", std::uint64_t{running->port()}},
                             {"http_port", std::uint64_t{running->http_port()}},
                             {"admin_port", std::uint64_t{running->admin_port()}},
                             {"grpc_port", std::uint64_t{running->grpc_port()}}});
  const int exit_code = running->run();
  {
    const std::lock_guard lock{mutex};
    running = nullptr;
  }
  (*log)->info("stopped", {{"exit_code", static_cast<std::uint64_t>(exit_code)}});
  return exit_code;
}
