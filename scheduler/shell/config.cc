#include "scheduler/shell/config.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

#include "scheduler/core/runtime_address.h"

namespace windlass {
namespace {

constexpr Range<Duration> kSeconds{seconds{1}, seconds{3600}};
constexpr Range<double> kPercent{0, 100};
constexpr Range<Duration> kStage{milliseconds{100}, seconds{3600}};  // of opening a connection

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string{name.data()} : "scheduler";
}

void read_server(ConfigReader& reader, ServiceConfig& config) {
  ConfigTable server = reader.section("server");
  config.id = server.text("id", host_name());
  config.listen = read_listen_address(server, "listen", "127.0.0.1:7443");
  config.path = server.text("path", "/ws/worker");
  if (!config.path.starts_with('/')) server.problem("path", "must begin with a slash, as \"/ws/worker\"");
  config.origins = server.list("origins");
  const auto cores = std::max(1U, std::thread::hardware_concurrency());
  config.loops = static_cast<std::uint32_t>(server.integer("loops", cores, {1, 64}));
  config.tls_deadline = server.duration("tls_deadline", config.tls_deadline, kStage);
  config.upgrade_deadline = server.duration("upgrade_deadline", config.upgrade_deadline, kStage);
  config.opening_max = server.integer("opening_max", config.opening_max, {1, 1'000'000});
  config.connections_max = server.integer("connections_max", config.connections_max, {1, 10'000'000});
  config.drain_window = server.duration("drain_window", seconds{20}, {seconds{0}, seconds{600}});

  ConfigTable tls = reader.section("tls");
  config.clear_text = tls.boolean("clear_text", false);
  const auto certificate = tls.optional_text("certificate");
  const auto key = tls.optional_text("key");
  const auto authority = tls.optional_text("client_authority");
  static constexpr std::array<std::string_view, 3> kPolicies = {"none", "optional", "required"};
  const std::string policy = tls.choice("client_certificates", "none", kPolicies);
  const std::string version = tls.choice("version_min", "1.2", std::array<std::string_view, 2>{"1.2", "1.3"});
  if (certificate.has_value() != key.has_value()) {
    tls.problem(certificate ? "certificate" : "key",
                certificate ? "needs tls.key too" : "needs tls.certificate too");
  }
  if (policy != "none" && !authority) {
    tls.problem("client_certificates",
                "needs client_authority, the PEM file of who signs client certificates");
  }
  if (!certificate && !key && !config.clear_text) {
    check_clear_text(server, config.listen,
                     "set tls.certificate and tls.key, listen on 127.0.0.1, or set tls.clear_text");
  }
  if (!certificate || !key) return;
  TlsServerOptions options;
  options.identity = {*certificate, *key};
  options.client_certificates = policy == "none"       ? ClientCertificates::None
                                : policy == "optional" ? ClientCertificates::Optional
                                                       : ClientCertificates::Required;
  options.client_authority_file = authority.value_or("");
  options.version_min = version == "1.3" ? TlsVersion::Tls13 : TlsVersion::Tls12;
  config.tls = std::move(options);
}

constexpr Range<std::uint64_t> kMisses{1, 100};

// Each level needs as many missed heartbeats as the one before, or more.
void check_ladder(ConfigTable& table, const HeartbeatLadder& ladder) {
  if (ladder.warn > ladder.degraded) {
    table.problem("heartbeat_misses_degraded", "must not be less than heartbeat_misses_warn");
  }
  if (ladder.degraded > ladder.lost) {
    table.problem("heartbeat_misses_lost", "must not be less than heartbeat_misses_degraded");
  }
}

std::uint32_t count32(std::uint64_t count) {
  return static_cast<std::uint32_t>(count);
}

std::optional<std::uint32_t> count32(std::optional<std::uint64_t> count) {
  return count ? std::optional(static_cast<std::uint32_t>(*count)) : std::nullopt;
}

void read_session(ConfigReader& reader, ServiceConfig& config) {
  ConfigTable table = reader.section("session");
  SessionConfig& session = config.session;
  config.credentials_file = table.required_text("credentials_file", "the file that says who may connect");
  config.keys_file = table.text("keys_file", "");
  session.heartbeat_interval = table.duration("heartbeat", session.heartbeat_interval, kSeconds);
  session.heartbeat_misses_warn =
      count32(table.integer("heartbeat_misses_warn", session.heartbeat_misses_warn, kMisses));
  session.heartbeat_misses_degraded =
      count32(table.integer("heartbeat_misses_degraded", session.heartbeat_misses_degraded, kMisses));
  session.heartbeat_misses_lost =
      count32(table.integer("heartbeat_misses_lost", session.heartbeat_misses_lost, kMisses));
  check_ladder(table, HeartbeatLadder::of(session));
  session.resume_ttl = table.duration("resume_window", session.resume_ttl, {seconds{1}, seconds{24 * 3600}});
  config.core.token_lifetime = token_lifetime(session);
  const Duration lost_after = std::max<Duration>(config.core.lost_after, session.heartbeat_interval * 3 / 2);
  config.core.lost_after =
      table.duration("lost_after", lost_after, {milliseconds{100}, limits::kIntervalMax});
  if (config.core.lost_after <= session.heartbeat_interval) {
    table.problem("lost_after",
                  "must be longer than session.heartbeat: a quiet worker is heard only so often");
  }
  session.dead_link_after =
      table.duration("dead_link_after", session.dead_link_after, {Duration{}, seconds{3600}});
  session.handshake_stage = table.duration("handshake_deadline", session.handshake_stage, kStage);
  session.drain_deadline =
      table.duration("drain_deadline", session.drain_deadline, {seconds{1}, seconds{86400}});
  session.receive_credit.frames = static_cast<std::uint32_t>(
      table.integer("window", session.receive_credit.frames, {1, limits::kWindowFramesMax}));
  session.receive_credit.bytes =
      table.bytes("window_bytes", session.receive_credit.bytes, {limits::kFrameBytesMax, 1ULL << 40U});
  session.frame_bytes_max =
      table.bytes("frame_bytes_max", session.frame_bytes_max, {16 * 1024, limits::kFrameBytesMax});
  session.frames_per_second_max =
      table.integer("frames_per_second_max", session.frames_per_second_max, {1, 10'000'000});
  session.sessions_max = table.integer("sessions_max", session.sessions_max, {1, 10'000'000});
  session.pending_handshakes_max =
      table.integer("pending_handshakes_max", session.pending_handshakes_max, {1, 1'000'000});
  session.mem_pct_max = table.number("drain_at_mem_pct", session.mem_pct_max, kPercent);
  session.disk_pct_max = table.number("drain_at_disk_pct", session.disk_pct_max, kPercent);
  session.load_hysteresis_pct = table.number("drain_hysteresis_pct", session.load_hysteresis_pct, kPercent);
  const std::uint64_t share = table.integer("tenant_share_pct", 50, {1, 100});
  session.tenant_sessions_max = std::max<std::uint64_t>(1, session.sessions_max * config.loops * share / 100);
}

constexpr std::array<std::string_view, 3> kSchemaModes = {"strict", "warn", "count"};  // as SchemaMode

bool is_tenant_name(std::string_view name) {
  return !name.empty() && name.size() <= limits::kTenantBytesMax &&
         std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~'; });
}

// A tenant with slow heartbeats is noticed late, and its tokens must still be good then.
Duration token_lifetime_of(SessionConfig session, const TenantTerms& terms) {
  const HeartbeatLadder ladder = TenantAccount{session, terms}.ladder();
  session.heartbeat_interval = ladder.interval;
  session.heartbeat_misses_lost = ladder.lost;
  return token_lifetime(session);
}

// Where it is not given it leaves room for the tenant's heartbeats, as the one of all tenants does.
void read_tenant_lost_after(ConfigTable& tenant, const TenantId& name, Duration interval, CoreOptions& core) {
  const Duration fitting = std::max<Duration>(core.lost_after, interval * 3 / 2);
  const Duration lost_after =
      tenant.duration("lost_after", fitting, {milliseconds{100}, limits::kIntervalMax});
  if (lost_after <= interval) {
    tenant.problem("lost_after",
                   "must be longer than the tenant's heartbeat: a quiet worker is heard only so often");
  }
  // Also where it is the one of all tenants: a reload changes the tenants' and not that one.
  core.tenant_lost_after.insert_or_assign(name, lost_after);
}

void read_tenants(ConfigReader& reader, ServiceConfig& config) {
  for (ConfigTable& tenant : reader.named_tables("tenants")) {
    const std::string name = tenant.name().substr(tenant.name().find('.') + 1);
    if (!is_tenant_name(name)) {
      tenant.problem("", "must be named after a tenant, 1 to 64 printable ASCII characters");
    }
    TenantTerms terms;
    terms.sessions_max = tenant.optional_integer("sessions_max", {1, 10'000'000});
    terms.pending_handshakes_max = tenant.optional_integer("pending_handshakes_max", {1, 1'000'000});
    terms.frames_per_second_max = tenant.optional_integer("frames_per_second_max", {1, 10'000'000});
    terms.mem_pct_max = tenant.optional_number("mem_pct_max", kPercent);
    terms.disk_pct_max = tenant.optional_number("disk_pct_max", kPercent);
    terms.load_hysteresis_pct = tenant.optional_number("hysteresis_pct", kPercent);
    const Duration interval = tenant.duration("heartbeat", Duration{}, kSeconds);
    if (interval > Duration{}) terms.heartbeat_interval = interval;
    terms.heartbeat_misses_warn = count32(tenant.optional_integer("heartbeat_misses_warn", kMisses));
    terms.heartbeat_misses_degraded = count32(tenant.optional_integer("heartbeat_misses_degraded", kMisses));
    terms.heartbeat_misses_lost = count32(tenant.optional_integer("heartbeat_misses_lost", kMisses));
    check_ladder(tenant, TenantAccount{config.session, terms}.ladder());
    read_tenant_lost_after(tenant, TenantId{name}, TenantAccount{config.session, terms}.ladder().interval,
                           config.core);
    const std::string mode = tenant.choice("schema_mode", kSchemaModes.front(), kSchemaModes);
    terms.schema_mode = static_cast<SchemaMode>(std::ranges::find(kSchemaModes, mode) - kSchemaModes.begin());
    config.core.token_lifetime =
        std::max(config.core.token_lifetime, token_lifetime_of(config.session, terms));
    config.tenants.insert_or_assign(name, terms);
  }
}

void read_store(ConfigReader& reader, ServiceConfig& config) {
  ConfigTable table = reader.section("store");
  const std::string path = table.text("path", "var/scheduler.db");
  const std::string sync = table.choice("sync", "full", std::array<std::string_view, 2>{"full", "normal"});
  config.encryption_keys_file = table.text("encryption_keys_file", "");
  if (path != "memory") {
    config.store = SqliteOptions{.path = path, .sync = sync == "full" ? StoreSync::Full : StoreSync::Normal};
  }
  CoreOptions& core = config.core;
  ConfigTable commands = reader.section("commands");
  core.command_timeout =
      commands.duration("timeout", core.command_timeout, {seconds{1}, limits::kCommandTimeoutMax});
  core.pending_per_tenant_max =
      commands.integer("pending_per_tenant_max", core.pending_per_tenant_max, {1, 10'000'000});
  core.in_flight_per_worker_max = commands.integer("in_flight_per_worker_max", core.in_flight_per_worker_max,
                                                   {1, limits::kWindowFramesMax});
  core.finished_per_tenant_max =
      commands.integer("finished_per_tenant_max", core.finished_per_tenant_max, {0, 10'000'000});
  ConfigTable packages = reader.section("packages");
  config.packages.package_bytes_max = packages.bytes("bytes_max", config.packages.package_bytes_max,
                                                     {limits::kPackagePartBytes, 1ULL << 40U});
  config.packages.all_bytes_max = packages.bytes("all_bytes_max", config.packages.all_bytes_max,
                                                 {config.packages.package_bytes_max, 1ULL << 50U});
  ConfigTable runtimes = reader.section("runtimes");
  for (std::string& address : runtimes.list("addresses")) {
    if (!is_runtime_address(address)) {
      runtimes.problem(
          "addresses",
          "has '" + address + "', which is none of \"host\", \"host:port\", \"*.domain\" and \"*\"");
    }
    core.runtime_addresses.push_back(std::move(address));
  }
  core.resume_after =
      runtimes.duration("resume_after", core.resume_after, {milliseconds{100}, limits::kIntervalMax});
  ConfigTable messages = reader.section("messages");
  core.inbox_per_tenant_max = messages.integer("per_tenant_max", core.inbox_per_tenant_max, {1, 10'000'000});
  core.inbox_bytes_per_tenant_max = messages.bytes("bytes_per_tenant_max", core.inbox_bytes_per_tenant_max,
                                                   {limits::kFrameBytesMax, 1ULL << 40U});
  core.finished_age_max =
      commands.duration("finished_age_max", core.finished_age_max, {seconds{1}, limits::kIntervalMax});
}

void read_admin(ConfigReader& reader, ServiceConfig& config) {
  ConfigTable table = reader.section("admin");
  config.admin = read_listen_address(table, "listen", "127.0.0.1:7480");
  config.admin_anywhere = table.boolean("anywhere", false);
  config.metrics_open = table.boolean("metrics_open", false);
  const auto certificate = table.optional_text("certificate");
  const auto key = table.optional_text("key");
  if (certificate.has_value() != key.has_value()) {
    table.problem(certificate ? "certificate" : "key",
                  certificate ? "needs admin.key too" : "needs admin.certificate too");
  } else if (certificate) {
    config.admin_tls = TlsServerOptions{.identity = {*certificate, *key}};
  }
  if (!config.admin_tls && !config.admin_anywhere) {
    check_clear_text(table, config.admin,
                     "set admin.certificate and admin.key, listen on 127.0.0.1, or set admin.anywhere");
  }
  config.admin_access = read_access(table);
  if (!config.admin_access.is_any()) {
    table.problem("",
                  "needs a token: set token_file to a file that holds one, tokens_file to one with named "
                  "tokens, or WINDLASS_ADMIN_TOKEN");
  }
}

void read_log(ConfigReader& reader, ServiceConfig& config) {
  ConfigTable table = reader.section("log");
  static constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warn", "error"};
  config.log.level = log_level_from(table.choice("level", "info", kLevels)).value_or(LogLevel::Info);
  config.log.file = table.text("file", "");
}

}  // namespace

ConfigOutcome read_config(ConfigSources sources) {
  ConfigOutcome outcome;
  outcome.config.sources = sources;
  ConfigReader reader{std::move(sources)};
  read_server(reader, outcome.config);
  read_session(reader, outcome.config);
  read_tenants(reader, outcome.config);
  read_store(reader, outcome.config);
  read_admin(reader, outcome.config);
  read_log(reader, outcome.config);
  outcome.problems = reader.finish();
  return outcome;
}

}  // namespace windlass
