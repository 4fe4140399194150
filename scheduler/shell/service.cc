#include "scheduler/shell/service.h"

#include <sys/random.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/crypto/digest.h"
#include "protocol/shell/descriptors.h"
#include "scheduler/adapters/admin_http.h"
#include "scheduler/adapters/memory_store.h"
#include "scheduler/adapters/sqlite_store.h"
#include "scheduler/shell/admin_api.h"
#include "scheduler/shell/key_file.h"

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

Now wall_and_steady() {
  return {Instant{std::chrono::steady_clock::now().time_since_epoch()},
          std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now())};
}

}  // namespace

struct Service::Admin {
  Admin(Control& control, Metrics& metrics, AdminOptions options)
      : api(control, metrics, std::move(options)) {}
  AdminApi api;
  std::unique_ptr<AdminHttp> listener;
};

Result<std::unique_ptr<Service>> Service::create(ServiceConfig config, JsonLog& log) {
  std::unique_ptr<Service> service{new Service(std::move(config), log)};
  if (auto opened = service->open(); !opened) return opened.error();
  return service;
}

Service::Service(ServiceConfig config, JsonLog& log) : config_(std::move(config)), log_(log) {}

Service::~Service() = default;

std::uint16_t Service::admin_port() const {
  return admin_->listener->port();
}

Result<Done> Service::open() {
  auto credentials = read_credentials(config_.credentials_file);
  if (!credentials) return credentials.error();
  admission_ = std::make_unique<LiveAdmission>(std::move(*credentials));
  if (config_.tls) {
    auto tls = TlsContext::server(*config_.tls);
    if (!tls) return tls.error();
    tls_ = std::move(*tls);
  }
  if (auto opened = open_store(); !opened) return opened;
  auto keys = read_signing_keys();
  if (!keys) return keys.error();
  keys_ = std::move(*keys);
  if (auto opened = open_loops(); !opened) return opened;
  return open_admin();
}

Result<Done> Service::open_admin() {
  admin_ = std::make_unique<Admin>(
      *control_, metrics_,
      AdminOptions{.metrics_are_open = config_.metrics_open, .version = kVersion, .log = &log_});
  AdminHttpOptions options;
  options.address = config_.admin.host;
  options.port = config_.admin.port;
  options.clear_text_anywhere = config_.admin_anywhere;
  options.tokens = {sha256(config_.admin_token)};
  auto listener = AdminHttp::listen(control_loop_, std::move(options), admin_->api);
  if (!listener) return listener.error();
  admin_->listener = std::move(*listener);
  return Done{};
}

Result<Done> Service::open_store() {
  std::unique_ptr<StateStore> store = std::make_unique<MemoryStore>();
  if (config_.store) {
    std::error_code ignored;  // opening the file says what is wrong
    std::filesystem::create_directories(std::filesystem::path{config_.store->path}.parent_path(), ignored);
    auto opened = SqliteStore::open(*config_.store);
    if (!opened) return opened.error();
    store = std::move(*opened);
  }
  auto snapshot = store->load();
  if (!snapshot) return snapshot.error();
  auto core = SchedulerCore::restore(config_.core, *snapshot, random_seed(), wall_and_steady());
  if (!core) return core.error();
  control_ = std::make_unique<Control>(control_loop_, std::move(*core), std::move(store), metrics_);
  return Done{};
}

Result<std::vector<SigningKey>> Service::read_signing_keys() const {
  if (!config_.keys_file.empty()) return read_keys(config_.keys_file);
  if (!config_.store) return std::vector{keys_.empty() ? random_key() : keys_.front()};
  return read_or_make_keys(config_.store->path + ".keys");
}

Result<Done> Service::open_loops() {
  std::vector<SessionLoop*> all;
  ServerOptions server;
  server.address = config_.listen.host;
  server.port = config_.listen.port;
  server.tls = tls_.get();
  server.clear_text_anywhere = config_.clear_text;
  server.connection.tls_deadline = config_.tls_deadline;
  server.connection.head_deadline = config_.upgrade_deadline;
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
    options.keys = keys_;
    options.token_lifetime = config_.core.token_lifetime;
    options.seed = random_seed();
    auto loop = SessionLoop::create(std::move(options), *admission_, *control_, metrics_);
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

void Service::run() {
  for (const auto& loop : loops_) threads_.emplace_back([each = loop.get()] { each->run(); });
  control_loop_.run();
  for (const auto& loop : loops_) loop->stop();
  threads_.clear();  // joins them
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

void Service::finish() {
  control_loop_.stop();
}

void Service::reload() {
  control_loop_.post([this] {
    const auto complain = [this](const Error& error) {
      log_.error("reload: kept what was in force", {{"reason", error.reason}});
    };
    if (auto credentials = read_credentials(config_.credentials_file)) {
      admission_->replace(std::move(*credentials));
    } else {
      complain(credentials.error());
    }
    if (auto keys = read_signing_keys()) {
      keys_ = *keys;
      for (const auto& loop : loops_) loop->post_keys(*keys);
    } else {
      complain(keys.error());
    }
    if (tls_ != nullptr) {
      if (auto reloaded = tls_->reload(); !reloaded) complain(reloaded.error());
    }
    log_.info("reloaded");
  });
}

}  // namespace windlass
