// The settings of the language worker and of its runtime.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "worker-agent/adapters/confinement_probe.h"
#include "worker-agent/shell/config.h"
#include "worker-agent/shell/runtime_link.h"

namespace windlass::agent {
namespace {

// A worker sees what every program needs and what is listed, never the agent's environment: tokens may stand
// there. An item is NAME=value, or NAME for the agent's own value of it.
std::vector<std::string> worker_environment(const std::vector<std::string>& listed, ConfigTable& section) {
  std::vector<std::string> environment;
  const auto add_own = [&](const std::string& name) {
    const std::string prefix = name + "=";
    const bool is_listed =
        std::ranges::any_of(environment, [&](const std::string& each) { return each.starts_with(prefix); });
    const char* value = std::getenv(name.c_str());
    if (value != nullptr && !is_listed) environment.push_back(prefix + value);
  };
  for (const std::string& each : listed) {
    const std::size_t equals = each.find('=');
    if (each.empty() || equals == 0) {
      section.problem("environment", "has \"" + each + "\", which is neither NAME nor NAME=value");
    } else if (equals != std::string::npos) {
      environment.push_back(each);
    } else {
      add_own(each);
    }
  }
  for (const char* name : {"PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR"}) add_own(name);
  return environment;
}

std::string find_program(ConfigTable& section, const WorkerConfig& config) {
  std::string given = section.text("executable", "");
  if (!given.empty()) {
    if (!given.starts_with('/')) section.problem("executable", "must begin with '/'");
    if (::access(given.c_str(), X_OK) != 0)
      section.problem("executable", "names " + given + ", which cannot be executed");
    return given;
  }
  const auto found = find_executable(config);
  if (!found) section.problem("executable", "is not set, and " + found.error().reason);
  return found ? *found : std::string{};
}

void read_runtime(ConfigReader& reader, AgentSettings& settings) {
  ConfigTable section = reader.section("runtime");
  RuntimeSettings& runtime = settings.runtime;
  runtime.target = {.id = section.text("id", ""), .url = section.text("url", "")};
  runtime.clear_text = section.boolean("clear_text", settings.clear_text);
  runtime.needs_tls = settings.scheduler.secure;
  runtime.session = settings.session;
  runtime.fingerprint = settings.fingerprint;
  runtime.token_file = section.text("token_file", "");
  runtime.token = settings.token;
  if (!runtime.token_file.empty()) {
    const SecretFile file = read_secret_file(runtime.token_file);
    if (!file.problem.empty()) section.problem("token_file", "is wrong: " + file.problem);
    runtime.token = file.secret;
  }
  runtime.tls.authority_file = section.text("authority", runtime.tls.authority_file);
  constexpr std::array<std::string_view, 2> kTransports{"session", "grpc"};
  const std::string transport =
      section.choice("transport", is_grpc_url(runtime.target.url) ? "grpc" : "session", kTransports);
  if (runtime.target.url.empty()) return;
  if (const auto checked = check_runtime_url(runtime.target.url); !checked) {
    section.problem("url", "is no address of a runtime: " + checked.error().reason);
  } else if ((transport == "grpc") != is_grpc_url(runtime.target.url)) {
    section.problem("transport",
                    "does not fit the url: a session is reached by ws or wss, gRPC by http or https");
  }
}

void read_confinement(ConfigTable& section, LanguageWorkerSettings& worker) {
  constexpr std::array<std::string_view, 3> kLevels{"required", "best", "off"};  // as ConfinementLevel
  const std::string level = section.choice("confine", "best", kLevels);
  worker.confine = static_cast<ConfinementLevel>(std::ranges::find(kLevels, level) - kLevels.begin());
  if (const std::string user = section.text("user", ""); !user.empty()) {
    const auto found = find_user(user);
    if (found) worker.user = *found;
    if (!found) section.problem("user", "is wrong: " + found.error().reason);
  }
  worker.readable = section.list("readable");
  worker.writable = section.list("writable");
  for (const auto& [name, folders] :
       {std::pair{"readable", &worker.readable}, {"writable", &worker.writable}}) {
    for (const std::string& each : *folders) {
      if (!each.starts_with('/')) section.problem(name, "has \"" + each + "\", which must begin with '/'");
    }
  }
  constexpr std::uint64_t kPorts = 65'535;
  std::uint64_t ports = 0;
  for (const auto& [first, last] : section.ranges("ports", {1, kPorts})) {
    worker.ports.push_back({static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(last)});
    ports += last - first + 1;
  }
  // Each is a rule of the kernel's.
  if (ports > kPorts) section.problem("ports", "names more ports than there are; write each one once");
  worker.processes_max = section.integer("processes_max", worker.processes_max, {16, 1'000'000});
  worker.open_files_max = section.integer("open_files_max", worker.open_files_max, {64, 1'048'576});
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50U;
  worker.memory_bytes_max = section.bytes("memory_max", worker.memory_bytes_max, {0, kMost});
  worker.scratch_bytes_max = section.bytes("scratch_max", worker.scratch_bytes_max, {0, kMost});
  // No language worker can start with less.
  constexpr std::uint64_t kLeastMemory = std::uint64_t{16} << 20U;
  constexpr std::uint64_t kLeastScratch = std::uint64_t{1} << 20U;
  if (worker.memory_bytes_max > 0 && worker.memory_bytes_max < kLeastMemory)
    section.problem("memory_max", "must be 16MiB or more, or 0 for no limit");
  if (worker.scratch_bytes_max > 0 && worker.scratch_bytes_max < kLeastScratch)
    section.problem("scratch_max", "must be 1MiB or more, or 0 for no limit");
}

}  // namespace

void read_language_worker(ConfigReader& reader, AgentSettings& settings) {
  ConfigTable section = reader.section("language_worker");
  const std::string folder = section.text("folder", "");
  LanguageWorkerSettings worker;
  worker.arguments = section.list("arguments");
  worker.environment = worker_environment(section.list("environment"), section);
  worker.message_bytes_max =
      section.bytes("message_max", worker.message_bytes_max, {1 << 20, (std::uint64_t{1} << 31U) - 1});
  worker.output.line_bytes_max = section.bytes("line_max", worker.output.line_bytes_max, {64, 1 << 20});
  worker.output.lines_per_second = static_cast<std::uint32_t>(
      section.integer("lines_per_second", worker.output.lines_per_second, {1, 100'000}));
  worker.grace.word = section.duration("stop_grace", worker.grace.word, {Duration{}, seconds{600}});
  worker.restart_first =
      section.duration("restart_first", worker.restart_first, {milliseconds{1}, seconds{60}});
  worker.restart_cap = section.duration("restart_cap", worker.restart_cap, {milliseconds{1}, seconds{3600}});
  read_confinement(section, worker);
  if (folder.empty()) {
    static_cast<void>(section.text("executable", ""));
    return read_runtime(reader, settings);
  }
  auto config = load_worker_config(folder);
  if (!config) {
    section.problem("folder", "is wrong: " + config.error().reason);
    static_cast<void>(section.text("executable", ""));
    return read_runtime(reader, settings);
  }
  worker.config = *std::move(config);
  worker.executable = find_program(section, worker.config);
  settings.worker = std::move(worker);
  settings.core.has_worker = true;
  read_runtime(reader, settings);
}

}  // namespace windlass::agent
