#include "scheduler/shell/service.h"

#include <sys/random.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/base/version.h"
#include "protocol/crypto/digest.h"
#include "protocol/http/http_listener.h"
#include "protocol/shell/command_line.h"
#include "protocol/shell/descriptors.h"
#include "protocol/shell/key_file.h"
#include "protocol/shell/seal_file.h"
#include "scheduler/adapters/file_packages.h"
#include "scheduler/adapters/memory_packages.h"
#include "scheduler/adapters/memory_store.h"
#include "scheduler/adapters/sealed_store.h"
#include "scheduler/adapters/sqlite_file.h"
#include "scheduler/adapters/sqlite_store.h"
#include "scheduler/shell/admin_api.h"

namespace windlass {
namespace {

// After the drain window, for the last resets to leave.
constexpr Duration kDrainGrace = seconds{2};

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  CHECK(::getrandom(&seed, sizeof seed, 0) == sizeof seed);
  return seed;
}

// Connections of one loop, such that the store, the log, the admin listener and what is accepted in one turn
// always find a descriptor, however many strangers hold one.
std::size_t connections_within(std::uint64_t descriptors, std::uint64_t wanted, std::uint32_t loops) {
  constexpr std::uint64_t kLeast = 16;
  const std::uint64_t reserved = 64 + limits::kAdminConnectionsMax + loops * limits::kAcceptsPerTurnMax;
  const std::uint64_t room = descriptors > reserved ? (descriptors - reserved) / loops : 0;
  return std::min(wanted, std::max(kLeast, room));
}

std::vector<std::string> kids_of(const std::vector<SigningKey>& keys) {
  std::vector<std::string> kids;
  for (const SigningKey& key : keys) kids.push_back(key.kid);
  return kids;
}

Now wall_and_steady() {
  return {Instant{std::chrono::steady_clock::now().time_since_epoch()},
          std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now())};
}

}  // namespace

struct Service::Admin {
  Admin(Control& control, Metrics& metrics, AdminOptions options)
      : api(control, metrics, std::move(options)) {}
  AdminApi api;
  std::unique_ptr<HttpListener> listener;
};

Result<std::unique_ptr<Service>> Service::create(ServiceConfig config, JsonLog& log,
                                                 std::unique_ptr<StateStore> store) {
  std::unique_ptr<Service> service{new Service(std::move(config), log)};
  if (auto opened = service->open(std::move(store)); !opened) return opened.error();
  return service;
}

Service::Service(ServiceConfig config, JsonLog& log)
    : config_(std::move(config)),
      log_(log),
      reloader_(control_loop_, log),
      certificates_(control_loop_, log,
                    [this](const std::string& what, double expires) {
                      metrics_.set_certificate_expiry(what, expires);
                    }),
      tenants_(config_.session, config_.tenants) {}

Service::~Service() = default;

std::uint16_t Service::admin_port() const {
  return admin_->listener->port();
}

Result<Done> check_files(const ServiceConfig& config) {
  if (const auto credentials = read_credentials(config.credentials_file); !credentials) {
    return credentials.error();
  }
  for (const auto& options : {config.tls, config.admin_tls}) {
    if (!options) continue;
    if (const auto tls = TlsContext::server(*options); !tls) return tls.error();
  }
  if (!config.keys_file.empty()) {
    if (const auto keys = read_keys(config.keys_file); !keys) return keys.error();
  }
  if (!config.encryption_keys_file.empty()) {
    if (const auto keys = open_seal_file(config.encryption_keys_file, false); !keys) return keys.error();
  }
  if (!config.store) return Done{};
  const auto kind = look_at(config.store->path);
  return kind ? Result<Done>{Done{}} : kind.error();
}

Result<Done> Service::open(std::unique_ptr<StateStore> store) {
  // Nothing is made while something is wrong, and what this start makes itself is no change of a file.
  if (auto checked = check_files(config_); !checked) return checked;
  if (auto opened = open_store(std::move(store)); !opened) return opened;
  if (auto keys = first_keys(); !keys) return keys.error();
  watch_files();
  auto credentials = read_credentials(config_.credentials_file);
  if (!credentials) return credentials.error();
  for (const auto& each : credentials->tokens) metrics_.tenant(each.tenant);
  for (const auto& each : credentials->certificates) metrics_.tenant(each.tenant);
  const bool asks = config_.tls && config_.tls->client_certificates != ClientCertificates::None;
  admission_ = std::make_unique<LiveAdmission>(std::move(*credentials), tenants_, asks);
  control_->core().denials().for_each_durable([this](const std::string&, const Denial& denial) {
    denied_.add(denial.worker.tenant.value(), denial.worker.instance.value());
  });
  gate_ = std::make_unique<DenyingAdmission>(*admission_, denied_, runtime_ids_);
  if (config_.tls) {
    auto tls = TlsContext::server(*config_.tls);
    if (!tls) return tls.error();
    tls_ = std::move(*tls);
  }
  auto keys = first_keys();
  if (!keys) return keys.error();
  key_rotation_ = std::make_unique<KeyRotation>(kids_of(*keys), config_.core.token_lifetime);
  if (auto opened = open_packages(); !opened) return opened;
  if (auto opened = open_loops(*keys); !opened) return opened;
  return open_admin();
}

Result<Done> Service::open_admin() {
  admin_ = std::make_unique<Admin>(*control_, metrics_,
                                   AdminOptions{.metrics_are_open = config_.metrics_open,
                                                .version = std::string{version()},
                                                .packages = packages_.get(),
                                                .log = &log_});
  HttpListenerOptions options;
  if (config_.admin_tls) {
    auto tls = TlsContext::server(*config_.admin_tls);
    if (!tls) return tls.error();
    admin_tls_ = std::move(*tls);
    options.tls = admin_tls_.get();
  }
  options.address = config_.admin.host;
  options.port = config_.admin.port;
  options.clear_text_anywhere = config_.admin_anywhere;
  auto tokens = read_access_tokens(config_.admin_access);
  if (!tokens) return tokens.error();
  options.tokens = *std::move(tokens);
  auto listener = HttpListener::listen(control_loop_, std::move(options), admin_->api);
  if (!listener) return listener.error();
  admin_->listener = std::move(*listener);
  certificates_.add("tls", tls_.get());
  certificates_.add("admin", admin_tls_.get());
  certificates_.look();
  return Done{};
}

Result<Done> Service::open_store(std::unique_ptr<StateStore> store) {
  if (store == nullptr && config_.store) {
    std::error_code ignored;  // opening the file says what is wrong
    std::filesystem::create_directories(std::filesystem::path{config_.store->path}.parent_path(), ignored);
    auto opened = open_sealed_store();
    if (!opened) return opened.error();
    store = std::move(*opened);
  } else if (store == nullptr) {
    store = std::make_unique<MemoryStore>();
  }
  auto snapshot = store->load();
  if (!snapshot) return snapshot.error();
  auto core = SchedulerCore::restore(config_.core, *snapshot, random_seed(), wall_and_steady());
  if (!core) return core.error();
  control_ = std::make_unique<Control>(
      control_loop_, std::move(*core), std::move(store), metrics_,
      ControlHooks{.log = &log_,
                   .on_fenced = [this](const StoreHealth& health) { handle_fenced(health); },
                   .denied = &denied_});
  return Done{};
}

// A key is made for a new store, never for one whose key was lost.
Result<std::unique_ptr<StateStore>> Service::open_sealed_store() {
  auto file = SqliteStore::open(*config_.store);
  if (!file) return file.error();
  const auto rows = (*file)->load();
  if (!rows) return rows.error();
  const std::string& given = config_.encryption_keys_file;
  const std::string keys = given.empty() ? config_.store->path + ".encryption-keys" : given;
  const bool may_make = given.empty() && !SealedStore::is_sealed(*rows);
  auto sealer = open_seal_file(keys, may_make);
  if (!sealer) {
    return Error{ErrorCode::StoreInvalid, Blame::Local,
                 "the store cannot be decrypted or encrypted: " + sealer.error().reason +
                     "; put its file of encryption keys back"};
  }
  auto sealed = SealedStore::open(std::move(*file), *std::move(sealer));
  if (!sealed) return sealed.error();
  if (sealed->sealed_anew > 0) {
    log_.info("rows of the store were encrypted with the newest key",
              {{"rows", std::uint64_t{sealed->sealed_anew}}});
  }
  return std::unique_ptr<StateStore>{std::move(sealed->store)};
}

Result<Done> Service::open_packages() {
  std::unique_ptr<PackageStore> store;
  if (config_.store) {
    auto files = FilePackages::open(config_.store->path + ".packages", config_.packages);
    if (!files) return files.error();
    store = std::move(*files);
  } else {
    store = std::make_unique<MemoryPackages>(config_.packages);
  }
  packages_ = std::make_unique<PackageDesk>(
      control_loop_, std::move(store),
      [this](const std::string& digest) { return control_->core().apps().is_package_used(digest); },
      limits::package_part_bytes(config_.session.frame_bytes_max));
  control_->set_packages(packages_.get());
  return Done{};
}

std::string Service::keys_file() const {
  if (!config_.keys_file.empty()) return config_.keys_file;
  return config_.store ? config_.store->path + ".keys" : "";
}

Result<std::vector<SigningKey>> Service::first_keys() const {
  const std::string file = keys_file();
  if (file.empty()) return std::vector{random_key()};
  return config_.keys_file.empty() ? read_or_make_keys(file) : read_keys(file);
}

Result<Done> Service::open_loops(const std::vector<SigningKey>& keys) {
  std::vector<SessionLoop*> all;
  ServerOptions server;
  server.address = config_.listen.host;
  server.port = config_.listen.port;
  server.tls = tls_.get();
  server.clear_text_anywhere = config_.clear_text;
  server.connection.tls_deadline = config_.tls_deadline;
  server.connection.head_deadline = config_.upgrade_deadline;
  server.connection.dead_link_after = config_.session.dead_link_after;
  server.opening_max = config_.opening_max;
  const std::uint64_t descriptors = raise_descriptor_limit();
  server.connections_max = connections_within(descriptors, config_.connections_max, config_.loops);
  if (server.connections_max < config_.connections_max) {
    log_.info("the descriptor limit lowers connections_max",
              {{"descriptors", descriptors}, {"connections_max", std::uint64_t{server.connections_max}}});
  }
  server.rules.paths = {config_.path};
  server.rules.origins_allowed = config_.origins;
  for (std::uint32_t i = 0; i < config_.loops; ++i) {
    SessionLoopOptions options;
    options.index = i;
    options.scheduler.scheduler_id = config_.id;
    options.session = config_.session;
    options.server = server;
    options.keys = keys;
    options.token_lifetime = config_.core.token_lifetime;
    options.seed = random_seed();
    options.log = &log_;
    auto loop = SessionLoop::create(std::move(options), *gate_, *control_, metrics_);
    if (!loop) return loop.error();
    server.port = (*loop)->port();  // the one that the system chose for the first
    for (const Revocation& revocation : control_->core().revocations()) (*loop)->revoke_tokens(revocation);
    all.push_back(loop->get());
    loops_.push_back(std::move(*loop));
  }
  for (SessionLoop* loop : all) loop->set_siblings(all);
  control_->set_loops(std::move(all));
  return Done{};
}

int Service::run() {
  for (const auto& loop : loops_) threads_.emplace_back([each = loop.get()] { each->run(); });
  control_loop_.run();
  for (const auto& loop : loops_) loop->stop();
  threads_.clear();  // joins them
  return exit_code_;
}

void Service::stop() {
  control_loop_.post([this] { handle_stop(); });
}

void Service::handle_stop() {
  if (std::exchange(stopping_, true)) return finish();
  log_.info("draining; a second signal stops at once",
            {{"window_ms", static_cast<std::uint64_t>(config_.drain_window / milliseconds{1})}});
  admin_->api.start_draining();
  draining_ = loops_.size();
  for (const auto& loop : loops_) {
    loop->post_drain(config_.drain_window, [this] {
      control_loop_.post([this] {
        if (--draining_ == 0) finish();
      });
    });
  }
  deadline_ = std::make_unique<LoopAlarm>(control_loop_, [this] { finish(); });
  deadline_->set(control_loop_.now().steady + config_.drain_window + kDrainGrace);
}

// At once: whatever this process still said would speak for a fleet that another scheduler has.
void Service::handle_fenced(const StoreHealth& store) {
  log_.error(
      "another scheduler writes to this store, so this one stops; give each its own store, or end the other "
      "one",
      {{"code", to_string(store.code)}, {"reason", store.reason}});
  exit_code_ = kExitFailed;
  finish();
}

void Service::finish() {
  control_loop_.stop();
}

void Service::reload() {
  control_loop_.post([this] { reloader_.reload(); });
}

void Service::watch_files() {
  reloader_.add("credentials", {config_.credentials_file}, [this] { return reload_credentials(); });
  if (config_.sources.file) {
    reloader_.add("tenants", {*config_.sources.file}, [this] { return reload_tenants(); });
  }
  if (const std::string file = keys_file(); !file.empty()) {
    reloader_.add("signing keys", {file}, [this] { return reload_keys(); });
  }
  if (config_.tls) {
    std::vector<std::string> files{config_.tls->identity.certificate_file, config_.tls->identity.key_file};
    if (!config_.tls->client_authority_file.empty()) files.push_back(config_.tls->client_authority_file);
    reloader_.add("certificates", std::move(files), [this] { return reload_certificate(*tls_); });
  }
  if (config_.admin_tls) {
    const TlsIdentity& identity = config_.admin_tls->identity;
    reloader_.add("admin certificate", {identity.certificate_file, identity.key_file},
                  [this] { return reload_certificate(*admin_tls_); });
  }
  std::vector<std::string> admin;
  for (const auto& file : {config_.admin_access.token_file, config_.admin_access.tokens_file}) {
    if (!file.empty()) admin.push_back(file);
  }
  if (!admin.empty())
    reloader_.add("admin tokens", std::move(admin), [this] { return reload_admin_tokens(); });
  reloader_.watch();
}

Result<Done> Service::reload_credentials() {
  auto credentials = read_credentials(config_.credentials_file);
  if (!credentials) return credentials.error();
  admission_->replace(std::move(*credentials));
  return Done{};
}

Result<Done> Service::reload_certificate(TlsContext& tls) {
  auto reloaded = tls.reload();
  if (reloaded) certificates_.look();
  return reloaded;
}

// All settings have to be good, and only these change: the rest is what the process was built from.
Result<Done> Service::reload_tenants() {
  auto [fresh, problems] = read_config(config_.sources);
  if (!problems.empty()) return Error{ErrorCode::Internal, Blame::Local, problems.front()};
  tenants_.replace(std::move(fresh.tenants));
  control_->set_tenant_lost_after(std::move(fresh.core.tenant_lost_after));
  return Done{};
}

Result<Done> Service::reload_keys() {
  auto keys = read_keys(keys_file());
  if (!keys) return keys.error();
  const Instant now = control_loop_.now().steady;
  for (const std::string& kid : key_rotation_->replace(kids_of(*keys), now)) {
    log_.warn("a signing key is gone while tokens that it signed are good; their workers cannot resume",
              {{"kid", kid}});
  }
  if (const Duration needed = key_rotation_->older_needed_for(now); needed > Duration{}) {
    log_.info("session tokens of older signing keys are good for a while; keep those keys for so long",
              {{"old_keys_needed_for_s", static_cast<std::uint64_t>(needed / seconds{1})}});
  }
  for (const auto& loop : loops_) loop->post_keys(*keys);
  return Done{};
}

Result<Done> Service::reload_admin_tokens() {
  auto tokens = read_access_tokens(config_.admin_access);
  if (!tokens) return tokens.error();
  admin_->listener->set_tokens(*std::move(tokens));
  return Done{};
}

}  // namespace windlass
