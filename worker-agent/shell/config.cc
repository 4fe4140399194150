#include "worker-agent/shell/config.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "protocol/adapters/certificate.h"
#include "protocol/base/version.h"

namespace windlass::agent {
namespace {

// Where a scheduler serves sessions unless it is told otherwise.
constexpr std::string_view kPath = "/ws/worker";

// A tenant and a rule are named in frames, rows and addresses.
bool is_name(std::string_view text, std::size_t bytes_max) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !text.empty() && text.size() <= bytes_max && std::ranges::all_of(text, is_allowed);
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string beside_this_program(const std::string& name) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? name : (self.parent_path() / name).string();
}

void read_scheduler(ConfigReader& reader, AgentSettings& settings) {
  ConfigTable section = reader.section("scheduler");
  const std::string url =
      section.required_text("url", "the address of the scheduler, such as \"wss://scheduler.example:7443\"");
  settings.clear_text = section.boolean("clear_text", false);
  if (url.empty()) return;
  if (const auto address = parse_address(url)) {
    settings.scheduler = *address;
    if (settings.scheduler.target == "/") settings.scheduler.target = kPath;
  } else {
    section.problem("url", "is no address: " + address.error().reason);
  }
}

void read_identity(ConfigReader& reader, AgentSettings& settings) {
  ConfigTable tls = reader.section("tls");
  TlsClientOptions options{.authority_file = tls.text("authority", "")};
  const std::string certificate = tls.text("certificate", "");
  const std::string key = tls.text("key", "");
  if (certificate.empty() != key.empty()) {
    tls.problem(certificate.empty() ? "key" : "certificate",
                "needs the other of tls.certificate and tls.key");
  } else if (!certificate.empty()) {
    options.identity = TlsIdentity{certificate, key};
    const auto fingerprint = certificate_fingerprint(certificate);
    if (!fingerprint) tls.problem("certificate", "is wrong: " + fingerprint.error().reason);
    if (fingerprint) settings.fingerprint = *fingerprint;
  }
  if (settings.scheduler.secure) settings.tls = options;
  settings.runtime.tls = options;  // its address may come with a command

  ConfigTable auth = reader.section("auth");
  settings.token = auth.secret("token");
  settings.token_file = auth.text("token_file", "");
  if (!settings.token.empty() && !settings.token_file.empty()) {
    auth.problem("token", "and auth.token_file are both set; keep one");
  } else if (!settings.token_file.empty()) {
    const SecretFile file = read_secret_file(settings.token_file);
    if (!file.problem.empty()) auth.problem("token_file", "is wrong: " + file.problem);
    settings.token = file.secret;
  } else if (settings.token.empty() && certificate.empty()) {
    auth.problem("",
                 "has no way to prove who this worker is; set auth.token_file, WINDLASS_AUTH_TOKEN, or "
                 "tls.certificate and tls.key");
  }
  if (settings.token.size() > limits::kTokenBytesMax) auth.problem("token", "is longer than a token can be");
}

void read_worker(ConfigReader& reader, AgentSettings& settings) {
  ConfigTable worker = reader.section("worker");
  settings.tenant = worker.required_text("tenant", "the tenant this worker belongs to");
  if (!settings.tenant.empty() && !is_name(settings.tenant, limits::kTenantBytesMax)) {
    worker.problem("tenant", "must be 1 to 64 letters, digits, '-', '_' or '.'");
  }
  settings.worker_name = worker.text("name", host_name());
  if (settings.worker_name.size() > limits::kNameBytesMax) worker.problem("name", "is longer than 256 bytes");
  settings.state_folder = worker.text("state_folder", "var");
  settings.keys_file = worker.text("encryption_keys_file", settings.state_folder + "/encryption.keys");
  settings.core.max_parallel =
      static_cast<std::uint32_t>(worker.integer("max_parallel", settings.core.max_parallel, {1, 1024}));

  ConfigTable load = reader.section("load");
  settings.load_interval = load.duration("interval", settings.load_interval, {seconds{1}, seconds{3600}});
  // Of earlier versions.
  for (const char* const key : {"mem_pct_max", "disk_pct_max"}) {
    if (load.optional_number(key, {1, 100})) settings.has_load_limits = true;
  }

  ConfigTable session = reader.section("session");
  SessionConfig& config = settings.session;
  config.drain_deadline =
      session.duration("drain_deadline", config.drain_deadline, {Duration{}, seconds{86'400}});
  config.backoff_first =
      session.duration("backoff_first", config.backoff_first, {milliseconds{1}, seconds{600}});
  config.backoff_cap = session.duration("backoff_cap", config.backoff_cap, {milliseconds{1}, seconds{3600}});
  if (config.backoff_cap < config.backoff_first) session.problem("backoff_cap", "is less than backoff_first");
  config.dead_link_after =
      session.duration("dead_link_after", config.dead_link_after, {Duration{}, seconds{3600}});
  config.receive_credit.frames = static_cast<std::uint32_t>(
      session.integer("window", config.receive_credit.frames, {1, limits::kWindowFramesMax}));
}

void read_rule(ConfigTable& table, AgentSettings& settings) {
  ExecRule rule;
  rule.name = table.name().substr(table.name().find('.') + 1);
  rule.program = table.required_text("program", "the absolute path of a program");
  rule.args = table.list("args");
  rule.arg_patterns = table.list("arg_patterns");
  rule.timeout = table.duration("timeout", rule.timeout, {milliseconds{1}, seconds{86'400}});
  rule.output_bytes_max = table.bytes("output_max", rule.output_bytes_max, {0, 256 * 1024});
  if (!is_name(rule.name, 64)) table.problem("", "must be named with letters, digits, '-', '_' or '.'");
  if (!rule.program.empty() && !rule.program.starts_with('/'))
    table.problem("program", "must begin with '/'");
  if (rule.program.starts_with('/') && ::access(rule.program.c_str(), X_OK) != 0) {
    table.problem("program", "names " + rule.program + ", which cannot be executed");
  }
  for (const std::string& pattern : rule.arg_patterns) {
    if (const std::string problem = pattern_problem(pattern); !problem.empty()) {
      std::string sentence = "has \"";
      sentence.append(pattern).append("\", which is no regular expression: ").append(problem);
      table.problem("arg_patterns", sentence);
    }
  }
  settings.core.rules.push_back(std::move(rule));
}

// Each rule is a feature of the registration, which comes before the scheduler says how much it takes.
void check_registration(ConfigTable& exec, const AgentSettings& settings) {
  constexpr std::size_t kBeside = 4 * 1024;  // envelope, names and the other lists
  constexpr std::size_t kAround = std::string_view{R"("exec.",)"}.size();
  std::size_t bytes = 0;
  for (const ExecRule& rule : settings.core.rules) bytes += rule.name.size() + kAround;
  //= LIM-10
  if (settings.core.rules.size() < limits::kCapabilitiesMax &&
      bytes <= limits::kFrameBytesBeforeAuthMax - kBeside) {
    return;
  }
  exec.problem("",
               "has more rules than a registration has room for: at most 255, whose names are 10 KiB "
               "together; use fewer rules or shorter names");
}

void read_exec(ConfigReader& reader, AgentSettings& settings) {
  ConfigTable exec = reader.section("exec");
  settings.watcher = exec.text("watcher", beside_this_program("windlass-run"));
  settings.exec_environment = exec.list("environment");
  for (const std::string& each : settings.exec_environment) {
    if (each.find('=') == std::string::npos || each.starts_with('=')) {
      exec.problem("environment", "has \"" + each + "\", which is not NAME=value");
    }
  }
  // Programs see what every program needs and what is listed, never this process's environment: tokens may
  // stand there.
  for (const char* name : {"PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR"}) {
    const char* value = std::getenv(name);
    const std::string prefix = std::string{name} + "=";
    const bool is_listed = std::ranges::any_of(
        settings.exec_environment, [&](const std::string& each) { return each.starts_with(prefix); });
    if (value != nullptr && !is_listed) settings.exec_environment.push_back(prefix + value);
  }
  for (ConfigTable& table : reader.named_tables("exec")) read_rule(table, settings);
  check_registration(exec, settings);
}

void read_journal(ConfigReader& reader, AgentSettings& settings) {
  ConfigTable section = reader.section("journal");
  JournalConfig& journal = settings.core.journal;
  journal.entries_max = section.integer("entries_max", journal.entries_max, {16, 16'777'216});
  journal.bytes_max = section.bytes("bytes_max", journal.bytes_max, {1 << 20, std::uint64_t{1} << 34U});
  journal.ttl = section.duration("keep", journal.ttl, {limits::kJournalTtl, seconds{30 * 86'400}});
}

void read_metrics(ConfigReader& reader, AgentSettings& settings) {
  ConfigTable section = reader.section("metrics");
  const bool is_wanted = !section.text("listen", "").empty();
  MetricsSettings metrics;
  metrics.anywhere = section.boolean("anywhere", false);
  metrics.open = section.boolean("open", false);
  metrics.access = read_access(section);
  const std::string certificate = section.text("certificate", "");
  const std::string key = section.text("key", "");
  if (certificate.empty() != key.empty()) {
    section.problem(certificate.empty() ? "key" : "certificate", "needs the other of certificate and key");
  } else if (!certificate.empty()) {
    metrics.tls = TlsServerOptions{.identity = {certificate, key}};
  }
  if (!is_wanted) return;
  metrics.listen = read_listen_address(section, "listen", "127.0.0.1:9464");
  if (!metrics.access.is_any() && !metrics.open) {
    check_open(section, metrics.listen,
               "set metrics.token_file or metrics.tokens_file, listen on 127.0.0.1, or set metrics.open");
  } else if (metrics.access.is_any() && !metrics.tls && !metrics.anywhere) {
    check_clear_text(section, metrics.listen,
                     "set metrics.certificate and metrics.key, listen on 127.0.0.1, or set metrics.anywhere");
  }
  settings.metrics = std::move(metrics);
}

}  // namespace

SettingsOutcome read_settings(ConfigSources sources) {
  AgentSettings settings;
  settings.file = sources.file.value_or("");
  ConfigReader reader{std::move(sources)};
  read_scheduler(reader, settings);
  read_identity(reader, settings);
  read_worker(reader, settings);
  read_exec(reader, settings);
  read_journal(reader, settings);
  read_metrics(reader, settings);
  read_language_worker(reader, settings);
  ConfigTable log = reader.section("log");
  constexpr std::array<std::string_view, 4> kLevels{"debug", "info", "warn", "error"};
  settings.log.level = *log_level_from(log.choice("level", "info", kLevels));
  settings.log.file = log.text("file", "");
  return {std::move(settings), reader.finish()};
}

Result<Done> check_files(const AgentSettings& settings) {
  if (settings.tls) {
    if (const auto tls = TlsContext::client(*settings.tls); !tls) return tls.error();
  }
  if (settings.metrics && settings.metrics->tls) {
    if (const auto tls = TlsContext::server(*settings.metrics->tls); !tls) return tls.error();
  }
  return Done{};
}

CommandLineOptions command_line_options() {
  return {
      .program = "windlass-agent",
      .version = std::string{version()},
      .description = "Holds one worker's session to a scheduler and does what it is told: each command once.",
      .examples =
          "Examples:\n"
          "  windlass-agent --config agent.toml\n"
          "  windlass-agent --config agent.toml --check-config\n"
          "  windlass-agent --scheduler wss://scheduler.example:7443 --tenant acme --token-file token\n"
          "  WINDLASS_AUTH_TOKEN=... windlass-agent --scheduler ws://127.0.0.1:7080 --tenant acme\n"
          "\n"
          "Signals: SIGTERM or SIGINT drains and exits with 0, a second one exits now; SIGHUP reads\n"
          "the token file and certificates again.",
      .flags = {{"--scheduler", "scheduler.url", "address of the scheduler"},
                {"--tenant", "worker.tenant", "tenant this worker belongs to"},
                {"--name", "worker.name", "name shown to people; the host name if not given"},
                {"--state", "worker.state_folder", "folder of identity, journal and runs; var if not given"},
                {"--max-parallel", "worker.max_parallel", "programs that run at once"},
                {"--token-file", "auth.token_file", "file with this worker's token"},
                {"--authority", "tls.authority", "PEM file of who signs schedulers' certificates"},
                {"--certificate", "tls.certificate", "PEM file of this worker's certificate"},
                {"--key", "tls.key", "PEM file of its key"},
                {"--language-worker", "language_worker.folder",
                 "folder with the worker.config.json of a language worker"},
                {"--runtime", "runtime.url", "address of the runtime it works for until it is told another"},
                {"--metrics", "metrics.listen", "where to serve /metrics, as 127.0.0.1:9464"},
                {"--log-level", "log.level", "debug, info, warn or error"}}};
}

}  // namespace windlass::agent
