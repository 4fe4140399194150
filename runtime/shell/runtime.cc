#include "runtime/shell/runtime.h"

#include <sys/random.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "protocol/adapters/peer_info.h"
#include "protocol/adapters/socket_owner.h"
#include "protocol/base/check.h"
#include "protocol/shell/descriptors.h"
#include "protocol/shell/key_file.h"
#include "runtime/adapters/function_json.h"
#include "runtime/shell/http_keys.h"

namespace windlass::runtime {
namespace {

constexpr Duration kSessionsEndWithin = seconds{2};
constexpr std::uint64_t kDescriptorsReserved = 256;  // for the listeners, the log and the scheduler

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  CHECK(::getrandom(&seed, sizeof seed, 0) == sizeof seed);
  return seed;
}

std::string place_text(std::string_view scheme, const ListenAddress& listen, std::uint16_t port) {
  const bool is_wide = listen.host.find(':') != std::string::npos;
  const std::string host = is_wide ? "[" + listen.host + "]" : listen.host;
  return std::string{scheme} + "://" + host + ":" + std::to_string(port);
}

// What a scheduler assigns is served and nothing else.
RuntimeOptions core_options(const RuntimeConfig& config) {
  RuntimeOptions options = config.core;
  options.awaits_assignments = config.scheduler.has_value();
  return options;
}

}  // namespace

Result<Done> check_files(const RuntimeConfig& config) {
  if (const auto credentials = read_credentials(config.credentials_file); !credentials) {
    return credentials.error();
  }
  for (const auto& options : {config.tls, config.http_tls, config.grpc_tls, config.admin_tls}) {
    if (!options) continue;
    if (const auto tls = TlsContext::server(*options); !tls) return tls.error();
  }
  if (config.scheduler && config.scheduler->tls) {
    if (const auto tls = TlsContext::client(*config.scheduler->tls); !tls) return tls.error();
  }
  if (!config.keys_file.empty()) {
    if (const auto keys = read_keys(config.keys_file); !keys) return keys.error();
  }
  return Done{};
}

Result<std::unique_ptr<Runtime>> Runtime::create(RuntimeConfig config, JsonLog& log) {
  if (auto checked = check_files(config); !checked) return checked.error();
  std::unique_ptr<Runtime> made{new Runtime{std::move(config), log}};
  if (auto opened = made->open(); !opened) return opened.error();
  return made;
}

Runtime::Runtime(RuntimeConfig config, JsonLog& log)
    : config_(std::move(config)),
      log_(log),
      random_(random_seed()),
      reloader_(loop_, log),
      certificates_(loop_, log,
                    [this](const std::string& what, double expires) {
                      metrics_.set_certificate_expiry(what, expires);
                    }),
      tenants_(config_.session, {}),
      desk_(core_options(config_), config_.log_limits, loop_, metrics_, log, random_seed(),
            {.grants = config_.grants, .has_scheduler = config_.scheduler.has_value()}),
      tick_(loop_, [this] { tick(); }),
      sample_(loop_, [this] { sample(); }),
      deadline_(loop_, [this] { loop_.stop(); }),
      unseen_(config_.core.lost_after),
      unseen_alarm_(loop_,
                    [this] {
                      if (front_) front_->handle_changed();
                    }),
      early_(config_.core.pending_timeout, config_.core.pending_max, loop_.now().steady),
      early_alarm_(loop_, [this] {
        give_up_early(early_.take_due(loop_.now().steady),
                      {ErrorCode::LimitCapacity, Blame::Local,
                       "no worker of its application came after this runtime's start; try again later"});
      }) {
  loop_.add_turn_end(TurnPhase::Decide, *this);
}

Runtime::~Runtime() {
  loop_.remove_turn_end(TurnPhase::Decide, *this);
  grpc_.reset();  // its threads post to the loop
}

Result<Done> Runtime::open() {
  watch_files();
  if (auto added = add_applications(); !added) return added;
  if (auto opened = open_sessions(); !opened) return opened;
  if (auto opened = open_admin(); !opened) return opened;
  if (auto opened = open_http(); !opened) return opened;
  if (auto opened = open_grpc(); !opened) return opened;
  if (auto opened = open_scheduler(); !opened) return opened;
  watch_certificates();
  return Done{};
}

Result<Done> Runtime::add_applications() {
  for (const ApplicationSettings& settings : config_.applications) {
    ConfiguredApplication application{.version = settings.version,
                                      .directory = settings.directory,
                                      .environment = settings.environment,
                                      .functions = {}};
    auto texts = read_function_folder(settings.directory);
    if (!texts) return texts.error();
    application.functions = read_function_jsons(
        *texts,
        {.directory = settings.directory, .language = settings.language, .settings = &settings.environment});
    std::ifstream file{settings.directory + "/host.json", std::ios::binary};
    std::string host_json{std::istreambuf_iterator<char>{file}, {}};
    if (const auto read = read_host_json(host_json); !read) {
      return Error{ErrorCode::PkgInvalid, Blame::Local,
                   settings.directory + "/host.json: " + read.error().reason};
    }
    desk_.add_application(std::move(application), std::move(host_json));
  }
  return Done{};
}

Result<Done> Runtime::open_sessions() {
  auto credentials = read_credentials(config_.credentials_file);
  if (!credentials) return credentials.error();
  const bool asks = config_.tls && config_.tls->client_certificates != ClientCertificates::None;
  admission_ = std::make_unique<LiveAdmission>(*std::move(credentials), tenants_, asks);
  own_admission_ =
      std::make_unique<TenantAdmission>(*admission_, config_.scheduler ? config_.scheduler->tenant : "");
  if (config_.tls) {
    auto tls = TlsContext::server(*config_.tls);
    if (!tls) return tls.error();
    tls_ = *std::move(tls);
  }
  AgentSessionsOptions options;
  options.id = config_.id;
  options.session = config_.session;
  options.seed = random_seed();
  options.tenant = config_.scheduler ? config_.scheduler->tenant : "";
  options.limits.message_bytes_max = config_.message_bytes_max;
  options.limits.partial_bytes_max =
      std::max<std::size_t>(options.limits.partial_bytes_max, config_.message_bytes_max);
  options.unfinished_bytes_max = std::max(config_.unfinished_bytes_max, config_.message_bytes_max);
  options.queued_bytes_max = std::max(config_.queued_bytes_max, config_.message_bytes_max);
  options.server.address = config_.listen.host;
  options.server.port = config_.listen.port;
  options.server.tls = tls_.get();
  options.server.clear_text_anywhere = config_.clear_text;
  options.server.rules.paths = {config_.path};
  options.server.connection.dead_link_after = config_.session.dead_link_after;
  const std::uint64_t descriptors = raise_descriptor_limit();
  const std::uint64_t room =
      descriptors > 2 * kDescriptorsReserved ? descriptors - kDescriptorsReserved : kDescriptorsReserved;
  options.server.connections_max = std::min(config_.connections_max, room);
  if (config_.keys_file.empty()) {
    options.keys = {random_key()};
  } else {
    auto keys = read_keys(config_.keys_file);
    if (!keys) return keys.error();
    options.keys = *std::move(keys);
  }
  auto sessions = AgentSessions::listen(loop_, std::move(options), *own_admission_, desk_, metrics_, log_);
  if (!sessions) return sessions.error();
  sessions_ = *std::move(sessions);
  places_.url =
      config_.url.empty() ? place_text(config_.tls ? "wss" : "ws", config_.listen, port()) : config_.url;
  return Done{};
}

Result<Done> Runtime::open_admin() {
  HttpListenerOptions admin;
  admin.address = config_.admin.host;
  admin.port = config_.admin.port;
  // Without a token there is nothing to overhear that a stranger may not ask for.
  admin.clear_text_anywhere = config_.admin_anywhere || config_.admin_open;
  admin.asks_for_users = !config_.admin_access.is_any() && !config_.admin_open;
  admin.body_bytes_max = 1024;
  auto tokens = read_access_tokens(config_.admin_access);
  if (!tokens) return tokens.error();
  admin.tokens = *std::move(tokens);
  if (config_.admin_tls) {
    auto tls = TlsContext::server(*config_.admin_tls);
    if (!tls) return tls.error();
    admin_tls_ = *std::move(tls);
    admin.tls = admin_tls_.get();
  }
  auto listening = HttpListener::listen(loop_, std::move(admin), *this);
  if (!listening) return listening.error();
  admin_ = *std::move(listening);
  return Done{};
}

Result<Done> Runtime::open_http() {
  if (!config_.http) return Done{};

  HttpFrontOptions front;
  front.shows_errors = config_.http_shows_errors;
  front.needs_no_keys = config_.http_without_keys;
  front.takes_named_only = config_.http_named_only;
  front.hosts = HttpHosts{config_.http_hosts};
  front.origins = HttpOrigins{config_.http_origins, config_.http_origin_credentials};
  front.scheme = config_.http_tls ? "https" : "http";
  auto keys = read_http_keys();
  if (!keys) return keys.error();
  front.keys = *std::move(keys);
  front_ = std::make_unique<HttpFront>(front, static_cast<HttpFrontHost&>(*this), random_seed());
  HttpListenerOptions http;
  http.address = config_.http->host;
  http.port = config_.http->port;
  http.clear_text_anywhere = config_.http_anywhere;
  http.what = "requests to functions and their keys would be shown";
  http.is_open = true;
  http.head_bytes_max = 64 * 1024;
  http.body_bytes_max = config_.http_body_bytes_max;
  http.connections_max = config_.http_connections_max;
  // The core answers every invocation in its own time.
  http.answer_time = config_.core.invocation_timeout_max + config_.core.pending_timeout + seconds{60};
  if (config_.http_tls) {
    auto tls = TlsContext::server(*config_.http_tls);
    if (!tls) return tls.error();
    http_tls_ = *std::move(tls);
    http.tls = http_tls_.get();
  }
  auto serving = HttpListener::listen(loop_, std::move(http), *front_);
  if (!serving) return serving.error();
  http_ = *std::move(serving);
  places_.http =
      config_.http_url.empty() ? place_text(front.scheme, *config_.http, http_->port()) : config_.http_url;
  return Done{};
}

Result<HttpKeys> Runtime::read_http_keys() const {
  HttpKeys keys;
  if (!config_.http_keys_file.empty()) {
    auto read = read_http_keys_file(config_.http_keys_file);
    if (!read) return read.error();
    keys = *std::move(read);
  }
  if (config_.http_key_file.empty()) return keys;
  const auto key = read_http_key_file(config_.http_key_file);
  if (!key) return key.error();
  keys.everywhere.host.push_back(*key);
  return keys;
}

Result<Done> Runtime::open_grpc() {
  if (!config_.grpc) return Done{};
  GrpcServerOptions options;
  options.address = config_.grpc->host;
  options.port = config_.grpc->port;
  options.tls = config_.grpc_tls;
  options.queues = config_.grpc_queues;
  options.message_bytes_max = config_.message_bytes_max;
  options.streams_max = config_.core.workers_max;
  options.identify = [this](const GrpcCaller& caller) { return identify(caller); };
  options.refused = [this](const std::string& peer, const std::string& reason) {
    metrics_.count_session("refused");
    const auto left_out = refusals_.note(loop_.now().steady);
    if (!left_out) return;
    log_.warn("a connection was refused", {{"peer", peer}, {"reason", reason}, {"left_out", *left_out}});
  };
  auto server = GrpcServer::listen(loop_, std::move(options), desk_);
  if (!server) return server.error();
  grpc_ = *std::move(server);
  if (config_.grpc_tls) {
    auto tls = TlsContext::server(*config_.grpc_tls);
    if (!tls) return tls.error();
    grpc_tls_ = *std::move(tls);
  }
  grpc_port_.store(grpc_->port());
  places_.grpc = place_text(config_.grpc_tls ? "https" : "http", *config_.grpc, grpc_->port());
  return Done{};
}

// On gRPC's threads.
Result<StreamIdentity> Runtime::identify(const GrpcCaller& caller) const {
  StreamFacts facts;
  facts.says_agent = caller.says_agent;
  PeerInfo info;
  if (!caller.certificate_pem.empty()) read_verified_certificate(caller.certificate_pem, info);
  if (!caller.certificate_pem.empty() || !caller.token.empty()) {
    const auto shown = admission_->identify(
        {caller.peer, info.certificate_fingerprint, info.certificate_subject, info.certificate_sans},
        caller.token);
    facts.shown = shown ? Result<StreamCredential>{StreamCredential{
                              shown->tenant, shown->instance, shown->application,
                              shown->role == CredentialRole::Agent, shown->role == CredentialRole::Runtime}}
                        : Result<StreamCredential>{shown.error()};
  } else if (const auto owner = socket_owner(caller.peer, grpc_port_.load())) {
    facts.user = owner->user;
  }
  return identify_stream(facts, {.tenant = config_.scheduler ? config_.scheduler->tenant : "",
                                 .application = config_.grpc_application,
                                 .users = config_.grpc_users});
}

Result<Done> Runtime::open_scheduler() {
  if (!config_.scheduler) return Done{};
  auto link =
      SchedulerLink::open(loop_, *config_.scheduler, config_.id, config_.session, *this, log_, random_seed());
  if (!link) return link.error();
  scheduler_ = *std::move(link);
  return Done{};
}

void Runtime::watch_files() {
  reloader_.add("credentials", {config_.credentials_file}, [this]() -> Result<Done> {
    auto credentials = read_credentials(config_.credentials_file);
    if (!credentials) return credentials.error();
    admission_->replace(*std::move(credentials));
    return Done{};
  });
  if (!config_.keys_file.empty()) {
    reloader_.add("signing keys", {config_.keys_file}, [this]() -> Result<Done> {
      auto keys = read_keys(config_.keys_file);
      if (!keys) return keys.error();
      sessions_->set_keys(*std::move(keys));
      return Done{};
    });
  }
  if (config_.tls) {
    std::vector<std::string> files{config_.tls->identity.certificate_file, config_.tls->identity.key_file};
    if (!config_.tls->client_authority_file.empty()) files.push_back(config_.tls->client_authority_file);
    reloader_.add("certificates", std::move(files), [this] { return reload_certificate(*tls_); });
  }
  const auto watch = [this](const char* what, const std::optional<TlsServerOptions>& options,
                            std::unique_ptr<TlsContext>& tls) {
    if (!options) return;
    reloader_.add(what, {options->identity.certificate_file, options->identity.key_file},
                  [this, &tls] { return reload_certificate(*tls); });
  };
  watch("HTTP certificate", config_.http_tls, http_tls_);
  watch("gRPC certificate", config_.grpc_tls, grpc_tls_);
  watch("admin certificate", config_.admin_tls, admin_tls_);
  std::vector<std::string> admin;
  for (const auto& file : {config_.admin_access.token_file, config_.admin_access.tokens_file}) {
    if (!file.empty()) admin.push_back(file);
  }
  if (!admin.empty()) {
    reloader_.add("admin tokens", std::move(admin), [this]() -> Result<Done> {
      auto tokens = read_access_tokens(config_.admin_access);
      if (!tokens) return tokens.error();
      admin_->set_tokens(*std::move(tokens));
      return Done{};
    });
  }
  std::vector<std::string> key_files;
  if (!config_.http_key_file.empty()) key_files.push_back(config_.http_key_file);
  if (!config_.http_keys_file.empty()) key_files.push_back(config_.http_keys_file);
  if (config_.http && !key_files.empty()) {
    reloader_.add("HTTP keys", std::move(key_files), [this]() -> Result<Done> {
      auto keys = read_http_keys();
      if (!keys) return keys.error();
      front_->set_keys(*std::move(keys));
      return Done{};
    });
  }
  if (config_.scheduler && config_.scheduler->tls) {
    const TlsClientOptions& tls = *config_.scheduler->tls;
    std::vector<std::string> files;
    if (!tls.authority_file.empty()) files.push_back(tls.authority_file);
    if (tls.identity) files.insert(files.end(), {tls.identity->certificate_file, tls.identity->key_file});
    if (!files.empty()) {
      reloader_.add("scheduler certificates", std::move(files), [this] { return reload_scheduler_tls(); });
    }
  }
  if (config_.scheduler && !config_.scheduler->token_file.empty()) {
    reloader_.add("scheduler token", {config_.scheduler->token_file}, [this]() -> Result<Done> {
      SecretFile file = read_secret_file(config_.scheduler->token_file);
      if (!file.problem.empty()) return Error{ErrorCode::Internal, Blame::Local, file.problem};
      scheduler_->set_token(std::move(file.secret));
      return Done{};
    });
  }
  reloader_.watch();
}

int Runtime::run() {
  if (scheduler_) scheduler_->start();
  sample();
  tick();
  loop_.turn_again();  // the first dial waits for nothing
  loop_.run();
  return 0;
}

void Runtime::stop() {
  loop_.post([this] { handle_stop(); });
}

void Runtime::reload() {
  loop_.post([this] { reloader_.reload(); });
}

void Runtime::handle_stop() {
  if (std::exchange(is_signalled_, true)) return loop_.stop();
  begin_stop();
}

// Also the scheduler's drain, which may be said again and again: only people may end it at once.
void Runtime::begin_stop() {
  if (std::exchange(is_stopping_, true)) return;
  log_.info("ends what is under way; a second signal stops at once",
            {{"in_flight", std::uint64_t{desk_.core().in_flight()}}});
  give_up_early(early_.close(), {ErrorCode::SessionDraining, Blame::Local, "this runtime is stopping"});
  desk_.core().stop(loop_.now().steady);
  if (http_) http_->stop_listening();
  deadline_.set(loop_.now().steady + config_.core.drain_timeout + config_.core.terminate_grace +
                kSessionsEndWithin);
}

void Runtime::check_ended() {
  if (!is_stopping_) return;
  if (!is_leaving_) {
    // Answers that are ready still have to be read by whoever asked.
    if (desk_.calls() > 0 || (http_ && http_->busy() > 0)) return;
    if (scheduler_ && scheduler_->orders() > 0) return;
    is_leaving_ = true;
    sessions_->drain(Duration{});
    if (scheduler_) scheduler_->leave();
    deadline_.set(loop_.now().steady + kSessionsEndWithin);
    loop_.turn_again();
    return;
  }
  if (sessions_->sessions() == 0 && (!scheduler_ || scheduler_->is_gone())) loop_.stop();
}

void Runtime::on_turn_end(TurnPhase) {
  // What is sent may say something new at once; that is bounded, because peers answer in later turns.
  bool is_more = true;
  while (std::exchange(is_more, false)) {
    is_more = sessions_->take_events() || is_more;
    if (scheduler_) is_more = scheduler_->take_events() || is_more;
    is_more = desk_.step() || is_more;
    for (const Signal& signal : desk_.poll_signals()) {
      metrics_.count_signal(to_string(signal.kind));
      log_.info("the scheduler should know", {{"kind", to_string(signal.kind)},
                                              {"job_host", signal.job_host.text()},
                                              {"worker", signal.worker.value()},
                                              {"urgency", to_string(signal.urgency)},
                                              {"agent_brings_next", signal.is_agents},
                                              {"reason", log_text(signal.reason)}});
      send_signal(signal);
    }
    sessions_->flush();
    if (scheduler_) scheduler_->flush();
  }
  if (scheduler_) scheduler_->set_inflight(desk_.core().in_flight());
  if (desk_.poll_changed()) {
    unseen_.update(awaited_applications());
    if (front_) front_->handle_changed();
    if (front_ && desk_.poll_came()) front_->handle_came();
    begin_early();
  }
  if (front_) {
    for (const std::string& problem : front_->poll_problems()) {
      log_.warn("a function is not served as declared", {{"reason", log_text(problem)}});
    }
  }
  check_ended();
}

}  // namespace windlass::runtime
