#include "runtime/shell/config.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "protocol/adapters/certificate.h"
#include "protocol/base/version.h"
#include "runtime/shell/http_keys.h"

namespace windlass::runtime {
namespace {

constexpr std::string_view kSessionPath = "/ws/worker";
constexpr Range<std::uint64_t> kMessageBytes{64 * 1024, 1ULL << 30U};

std::string this_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string{name.data()} : "runtime";
}

std::optional<std::uint32_t> user_number(const std::string& name) {
  if (const passwd* const user = ::getpwnam(name.c_str())) return user->pw_uid;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (name.empty() || error != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return number;
}

// Certificate and key of one listener; with an authority its clients show certificates too.
std::optional<TlsServerOptions> read_tls(ConfigTable& table, bool wants_clients) {
  const auto certificate = table.optional_text("certificate");
  const auto key = table.optional_text("key");
  const auto authority = wants_clients ? table.optional_text("client_authority") : std::nullopt;
  if (certificate.has_value() != key.has_value()) {
    table.problem(certificate ? "certificate" : "key", "needs the other of certificate and key");
    return std::nullopt;
  }
  if (!certificate) return std::nullopt;
  TlsServerOptions options;
  options.identity = {*certificate, *key};
  options.client_authority_file = authority.value_or("");
  if (authority) options.client_certificates = ClientCertificates::Required;
  return options;
}

void read_sessions(ConfigReader& reader, RuntimeConfig& config) {
  ConfigTable server = reader.section("server");
  config.listen = read_listen_address(server, "listen", "127.0.0.1:7543");
  config.path = server.text("path", kSessionPath);
  if (!config.path.starts_with('/')) server.problem("path", "must begin with a slash, as \"/ws/worker\"");
  config.url = server.text("url", "");
  if (!config.url.empty() && !parse_address(config.url)) {
    server.problem("url", "must be the address that agents dial, as \"wss://runtime-1.example:7543\"");
  }
  config.connections_max = server.integer("connections_max", config.connections_max, {1, 10'000'000});

  ConfigTable tls = reader.section("tls");
  config.clear_text = tls.boolean("clear_text", false);
  config.tls = read_tls(tls, true);
  if (!config.tls && !config.clear_text) {
    check_clear_text(server, config.listen,
                     "set tls.certificate and tls.key, listen on 127.0.0.1, or set tls.clear_text");
  }

  ConfigTable table = reader.section("session");
  SessionConfig& session = config.session;
  config.credentials_file =
      table.required_text("credentials_file", "the file that says which agents may connect");
  config.keys_file = table.text("keys_file", "");
  constexpr Range<Duration> kSeconds{seconds{1}, seconds{3600}};
  // Two that are missed say that an agent is cut off, and callers should wait no longer than that to go to
  // another.
  session.heartbeat_interval = table.duration("heartbeat", seconds{2}, kSeconds);
  session.resume_ttl = table.duration("resume_window", session.resume_ttl, {seconds{1}, seconds{24 * 3600}});
  session.dead_link_after =
      table.duration("dead_link_after", session.dead_link_after, {Duration{}, seconds{3600}});
  session.handshake_stage = table.duration("handshake_deadline", session.handshake_stage, kSeconds);
  session.receive_credit.frames = static_cast<std::uint32_t>(
      table.integer("window", session.receive_credit.frames, {1, limits::kWindowFramesMax}));
  session.receive_credit.bytes =
      table.bytes("window_bytes", session.receive_credit.bytes, {limits::kFrameBytesMax, 1ULL << 40U});
  session.sessions_max = table.integer("sessions_max", session.sessions_max, {1, 10'000'000});
  constexpr Range<double> kPercent{0, 100};
  session.mem_pct_max = table.number("unfit_at_mem_pct", session.mem_pct_max, kPercent);
  session.disk_pct_max = table.number("unfit_at_disk_pct", session.disk_pct_max, kPercent);
  session.load_hysteresis_pct = table.number("unfit_hysteresis_pct", session.load_hysteresis_pct, kPercent);
  config.unfinished_bytes_max =
      table.bytes("unfinished_bytes_max", config.unfinished_bytes_max, {limits::kFrameBytesMax, 1ULL << 40U});
  config.queued_bytes_max =
      table.bytes("queued_bytes_max", config.queued_bytes_max, {limits::kFrameBytesMax, 1ULL << 40U});
  session.backoff_first =
      table.duration("backoff_first", session.backoff_first, {milliseconds{1}, seconds{600}});
  session.backoff_cap = table.duration("backoff_cap", session.backoff_cap, {milliseconds{1}, seconds{3600}});
}

// The name in "https://functions.example:8443/".
std::string host_of_url(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return {};
  url.remove_prefix(scheme + 3);
  return std::string{url.substr(0, url.find_first_of("/:?"))};
}

void read_http_access(ConfigTable& http, RuntimeConfig& config) {
  config.http_key_file = http.text("key_file", "");
  config.http_keys_file = http.text("keys_file", "");
  config.http_without_keys = http.boolean("without_keys", false);
  config.http_named_only = http.boolean("named_only", false);
  if (!config.http_key_file.empty()) {
    if (const auto key = read_http_key_file(config.http_key_file); !key)
      http.problem("key_file", "is of no use: " + key.error().reason);
  }
  const bool has_keys = !config.http_key_file.empty() || !config.http_keys_file.empty();
  if (config.http_without_keys && has_keys) {
    http.problem("without_keys", "must not be true where http.key_file or http.keys_file is set");
  }
  if (config.http_without_keys && (config.http_anywhere || config.http_tls)) {
    http.problem("without_keys", "is for a listener that only this machine reaches; set http.keys_file");
  }
  config.http_hosts = http.list("hosts");
  if (const std::string own = host_of_url(config.http_url); !own.empty()) {
    config.http_hosts.push_back(own);
    config.http_hosts.push_back("*." + own);
  }
  config.http_origins = http.list("origins");
  config.http_origin_credentials = http.boolean("origin_credentials", false);
  const bool is_any = std::ranges::find(config.http_origins, "*") != config.http_origins.end();
  if (is_any && config.http_origin_credentials) {
    http.problem("origin_credentials", "must not be true where http.origins has \"*\": name the origins");
  }
}

void read_http(ConfigReader& reader, RuntimeConfig& config) {
  ConfigTable http = reader.section("http");
  if (http.has("listen")) config.http = read_listen_address(http, "listen", "127.0.0.1:7580");
  config.http_url = http.text("url", "");
  config.http_anywhere = http.boolean("anywhere", false);
  config.http_tls = read_tls(http, false);
  read_http_access(http, config);
  config.http_shows_errors = http.boolean("shows_errors", false);
  config.http_body_bytes_max = http.bytes("body_bytes_max", config.http_body_bytes_max, {1024, 1ULL << 30U});
  config.http_connections_max = http.integer("connections_max", config.http_connections_max, {1, 1'000'000});
  if (config.http && !config.http_tls && !config.http_anywhere) {
    check_clear_text(http, *config.http,
                     "set http.certificate and http.key, listen on 127.0.0.1, or set http.anywhere");
  }

  ConfigTable admin = reader.section("admin");
  config.admin = read_listen_address(admin, "listen", "127.0.0.1:7581");
  config.admin_anywhere = admin.boolean("anywhere", false);
  config.admin_open = admin.boolean("open", false);
  config.admin_tls = read_tls(admin, false);
  config.admin_access = read_access(admin);
  if (!config.admin_access.is_any() && !config.admin_open) {
    check_open(admin, config.admin,
               "set admin.token_file or admin.tokens_file, listen on 127.0.0.1, or set admin.open");
  } else if (config.admin_access.is_any() && !config.admin_tls && !config.admin_anywhere) {
    check_clear_text(admin, config.admin,
                     "set admin.certificate and admin.key, listen on 127.0.0.1, or set admin.anywhere");
  }
}

void read_grpc(ConfigReader& reader, RuntimeConfig& config) {
  ConfigTable grpc = reader.section("grpc");
  if (grpc.has("listen")) config.grpc = read_listen_address(grpc, "listen", "127.0.0.1:7544");
  config.grpc_tls = read_tls(grpc, true);
  if (config.grpc_tls && config.grpc_tls->client_authority_file.empty()) {
    grpc.problem("client_authority", "is needed beside grpc.certificate: workers show certificates");
  }
  if (config.grpc && !config.grpc_tls) {
    check_clear_text(grpc, *config.grpc,
                     "set grpc.certificate, grpc.key and grpc.client_authority, or listen on 127.0.0.1");
  }
  config.grpc_application = grpc.text("application", "");
  config.grpc_users = {::geteuid()};
  for (const std::string& name : grpc.list("users")) {
    const auto user = user_number(name);
    if (!user) grpc.problem("users", "has '" + name + "', which is no user of this machine");
    config.grpc_users.push_back(user.value_or(::geteuid()));
  }
  config.grpc_queues = static_cast<std::uint32_t>(grpc.integer("queues", config.grpc_queues, {1, 64}));
  config.message_bytes_max = grpc.bytes("message_bytes_max", config.message_bytes_max, kMessageBytes);
  const auto is_named = [&](const ApplicationSettings& each) {
    return each.version.job_host.application_id == config.grpc_application;
  };
  if (!config.grpc_application.empty() && std::ranges::none_of(config.applications, is_named)) {
    grpc.problem("application", "names no [[application]] of this file");
  }
}

void read_scheduler(ConfigReader& reader, RuntimeConfig& config) {
  ConfigTable table = reader.section("scheduler");
  const auto url = table.optional_text("url");
  const std::string token_file = table.text("token_file", "");
  const std::string authority = table.text("authority", "");
  const std::string certificate = table.text("certificate", "");
  const std::string key = table.text("key", "");
  const std::string token = table.secret("token");  // the environment's way: WINDLASS_SCHEDULER_TOKEN
  const bool clear_text = table.boolean("clear_text", false);
  const std::string tenant = table.text("tenant", "");
  if (!url) return;
  SchedulerSettings settings;
  const auto address = parse_address(*url);
  if (!address) return table.problem("url", "is no address: " + address.error().reason);
  settings.address = *address;
  if (settings.address.target == "/") settings.address.target = kSessionPath;
  TlsClientOptions tls{.authority_file = authority};
  if (certificate.empty() != key.empty()) {
    table.problem(certificate.empty() ? "key" : "certificate", "needs the other of certificate and key");
  } else if (!certificate.empty()) {
    tls.identity = TlsIdentity{certificate, key};
    const auto fingerprint = certificate_fingerprint(certificate);
    if (!fingerprint) table.problem("certificate", "is wrong: " + fingerprint.error().reason);
    if (fingerprint) settings.fingerprint = *fingerprint;
    if (!settings.address.secure) table.problem("certificate", "can be shown to a wss:// address only");
  }
  if (settings.address.secure) settings.tls = std::move(tls);
  settings.clear_text = clear_text;
  settings.tenant = tenant;
  if (tenant.empty()) table.problem("tenant", "is needed: the tenant that this runtime works for");
  settings.token = token;
  settings.token_file = token_file;
  if (!token_file.empty()) {
    SecretFile file = read_secret_file(token_file);
    if (!file.problem.empty()) table.problem("token_file", "is of no use: " + file.problem);
    settings.token = std::move(file.secret);
  } else if (token.empty() && certificate.empty()) {
    table.problem("",
                  "needs a way to prove who this runtime is: set token_file to a file that holds a token, "
                  "WINDLASS_SCHEDULER_TOKEN, or certificate and key");
  }
  config.scheduler = std::move(settings);
}

void read_applications(ConfigReader& reader, RuntimeConfig& config) {
  for (ConfigTable& table : reader.tables("application")) {
    ApplicationSettings settings;
    settings.version.job_host.application_id = table.required_text("id", "the application's name");
    settings.version.job_host.metadata_version = table.text("metadata_version", "1");
    settings.version.code_version = table.text("code_version", "1");
    settings.directory = table.required_text("directory", "the application's folder, as its workers see it");
    settings.language = table.text("language", "");
    for (const std::string& pair : table.list("environment")) {
      const std::size_t equal = pair.find('=');
      if (equal == std::string::npos || equal == 0) {
        table.problem("environment", "must be a list of \"NAME=value\"");
        continue;
      }
      settings.environment.insert_or_assign(pair.substr(0, equal), pair.substr(equal + 1));
    }
    config.applications.push_back(std::move(settings));
  }
}

void read_grants(ConfigReader& reader, RuntimeConfig& config) {
  for (ConfigTable& table : reader.tables("grant")) {
    AgentGrant grant;
    grant.tenant = table.text("tenant", "");
    grant.instance = table.required_text("instance", "the agent's instance id, or \"*\" for any");
    grant.application = table.required_text("application", "what it may serve, or \"*\" for anything");
    config.grants.push_back(std::move(grant));
  }
}

}  // namespace

RuntimeConfigOutcome read_runtime_config(ConfigSources sources) {
  RuntimeConfigOutcome outcome;
  RuntimeConfig& config = outcome.config;
  ConfigReader reader{std::move(sources)};
  ConfigTable table = reader.section("runtime");
  config.id = table.text("id", this_host());
  if (config.id.empty() || config.id.size() > limits::kIdBytesMax) {
    table.problem("id", "must have 1 to 128 bytes");
  }
  read_core_options(table, config.core);
  config.memory_limit = table.bytes("memory_limit", 0, {0, 1ULL << 50U});
  read_sessions(reader, config);
  read_http(reader, config);
  read_applications(reader, config);
  read_grpc(reader, config);
  read_scheduler(reader, config);
  read_grants(reader, config);
  ConfigTable log = reader.section("log");
  static constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warn", "error"};
  config.log.level = *log_level_from(log.choice("level", "info", kLevels));
  config.log.file = log.text("file", "");
  config.log_limits.worker_lines = static_cast<std::uint32_t>(
      log.integer("worker_lines_per_second", config.log_limits.worker_lines, {1, 1'000'000}));
  config.log_limits.invocation_lines = static_cast<std::uint32_t>(
      log.integer("invocation_lines_per_second", config.log_limits.invocation_lines, {1, 1'000'000}));
  outcome.problems = reader.finish();
  return outcome;
}

CommandLineOptions runtime_command_line() {
  return {.program = "windlass-runtime",
          .version = std::string{version()},
          .description = "Gives invocations to language workers and answers for what becomes of each.",
          .examples =
              "Examples:\n"
              "  windlass-runtime --config runtime.toml\n"
              "  windlass-runtime --config runtime.toml --check-config\n"
              "  windlass-runtime --listen 127.0.0.1:7543 --http 127.0.0.1:7580 --credentials agents.toml\n"
              "  WINDLASS_SCHEDULER_TOKEN=... windlass-runtime --config runtime.toml \\\n"
              "      --scheduler wss://scheduler.example:7443 --tenant acme\n"
              "\n"
              "Signals: SIGTERM or SIGINT ends what is under way and exits with 0, a second one exits now;\n"
              "SIGHUP reads credentials, keys, tokens and certificates again, as also happens when their\n"
              "files change.",
          .flags = {{"--id", "runtime.id", "this runtime's name; the host name if not given"},
                    {"--listen", "server.listen", "where agents connect, as 127.0.0.1:7543"},
                    {"--url", "server.url", "the address that agents are told, if another"},
                    {"--http", "http.listen", "where functions are served over HTTP"},
                    {"--admin", "admin.listen", "where health and metrics are served"},
                    {"--grpc", "grpc.listen", "where workers dial in by themselves"},
                    {"--credentials", "session.credentials_file", "which agents may connect"},
                    {"--scheduler", "scheduler.url", "address of the scheduler; none: stand alone"},
                    {"--tenant", "scheduler.tenant", "tenant this runtime works for"},
                    {"--token-file", "scheduler.token_file", "file with this runtime's token"},
                    {"--certificate", "tls.certificate", "PEM file of this server's certificate"},
                    {"--key", "tls.key", "PEM file of its key"},
                    {"--log-level", "log.level", "debug, info, warn or error"}}};
}

}  // namespace windlass::runtime
