// windlass-scheduler: reads settings, then runs the service until it is told to stop.
#include <sys/stat.h>

#include <csignal>
#include <cstdio>

#include "protocol/base/version.h"
#include "protocol/shell/command_line.h"
#include "protocol/shell/signals.h"
#include "scheduler/shell/service.h"

namespace {

using namespace windlass;

const CommandLineOptions kCommandLine{
    .program = "windlass-scheduler",
    .version = std::string{version()},
    .description = "Holds the sessions of a fleet of workers and gets commands done on them.",
    .examples =
        "Examples:\n"
        "  windlass-scheduler --config scheduler.toml\n"
        "  windlass-scheduler --config scheduler.toml --check-config\n"
        "  WINDLASS_ADMIN_TOKEN=... windlass-scheduler --listen 127.0.0.1:7443 --store memory \\\n"
        "      --credentials credentials.toml\n"
        "\n"
        "Signals: SIGTERM or SIGINT drains and exits with 0, a second one exits now; SIGHUP reads tokens,\n"
        "keys, certificates and [tenants] again, as also happens when their files change.\n"
        "docs/examples/scheduler.toml has every setting with what it means.",
    .flags = {{"--id", "server.id", "this scheduler's name in every frame"},
              {"--listen", "server.listen", "where workers connect, as 127.0.0.1:7443"},
              {"--admin", "admin.listen", "where operators connect, as 127.0.0.1:7480"},
              {"--credentials", "session.credentials_file", "who may connect"},
              {"--store", "store.path", "the database file, or memory"},
              {"--certificate", "tls.certificate", "PEM file of this server's certificate"},
              {"--key", "tls.key", "PEM file of its key"},
              {"--loops", "server.loops", "event loops; one per core if not given"},
              {"--log-level", "log.level", "debug, info, warn or error"}},
};

int fail(const Error& error) {
  print_problems(kCommandLine.program, {error.reason});
  return exit_code_of(error);
}

}  // namespace

int main(int argc, char** argv) {
  ::umask(077);  // whatever this makes is nobody else's
  const CommandLine line = parse_command_line(kCommandLine, argc, argv);
  if (line.exit_code) return *line.exit_code;
  auto [config, problems] =
      read_config({.file = line.config_file, .environment = windlass_environment(), .flags = line.flags});
  if (!problems.empty()) {
    print_problems(kCommandLine.program, problems);
    return kExitBadConfiguration;
  }
  if (line.check_config) {
    if (const auto checked = check_files(config); !checked) return fail(checked.error());
    std::puts("the settings are good");
    return kExitOk;
  }
  auto log = JsonLog::open(config.log);
  if (!log) return fail(log.error());

  Service* running = nullptr;
  // Made before any thread, so that all inherit the blocked mask; signals count once the service stands.
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
  auto service = Service::create(std::move(config), **log);
  if (!service) return fail(service.error());
  {
    const std::lock_guard lock{mutex};
    running = service->get();
    if (is_pending) running->stop();
  }
  (*log)->info("listening", {{"port", std::uint64_t{(*service)->port()}},
                             {"admin_port", std::uint64_t{(*service)->admin_port()}}});
  const int exit_code = (*service)->run();
  {
    const std::lock_guard lock{mutex};
    running = nullptr;
  }
  (*log)->info("stopped", {{"exit_code", static_cast<std::uint64_t>(exit_code)}});
  return exit_code;
}
