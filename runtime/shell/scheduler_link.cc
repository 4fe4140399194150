#include "runtime/shell/scheduler_link.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "protocol/base/version.h"
#include "runtime/adapters/command_text.h"

namespace windlass::runtime {
namespace {

constexpr std::string_view kResultType = "biz.result";
constexpr Duration kLeaveDeadline = seconds{10};
constexpr std::size_t kSureMax = 1'000;  // of what waits to be said surely

// An order comes again only while its answer has not arrived, so answers need not be kept for long; and the
// journal must never be what bounds how many invocations are ordered.
constexpr JournalConfig kJournal{
    .entries_max = 1'000'000, .bytes_max = 256 * 1024 * 1024, .ttl = seconds{60}};

WorkerOptions peer_options(const SchedulerSettings& settings, const std::string& id) {
  std::array<char, 256> host{};
  static_cast<void>(::gethostname(host.data(), host.size() - 1));
  WorkerOptions options;
  options.tenant = settings.tenant;
  options.instance_id = id;
  options.role = Role::Runtime;
  options.auth_mode = settings.token.empty() ? AuthMode::Mtls : AuthMode::Token;
  options.auth_token = settings.token;
  options.fingerprint = settings.fingerprint;
  options.profile.worker_name = id;
  options.profile.version = version();
  options.profile.hostname = host.data();
  options.profile.max_parallel = 1024;
  options.profile.runtimes = {"functions"};
  options.profile.payload_types = {std::string{kInvokeType}, std::string{kSplitType},
                                   std::string{kDrainWorkerType}, std::string{kGrantsType},
                                   std::string{kApplicationsType}};
  return options;
}

}  // namespace

Result<std::unique_ptr<SchedulerLink>> SchedulerLink::open(EventLoop& loop, const SchedulerSettings& settings,
                                                           const std::string& id,
                                                           const SessionConfig& session,
                                                           SchedulerLinkHost& host, JsonLog& log,
                                                           std::uint64_t seed) {
  std::unique_ptr<SchedulerLink> link{
      new SchedulerLink{loop, peer_options(settings, id), session, host, log, seed}};
  if (settings.tls) {
    auto tls = TlsContext::client(*settings.tls);
    if (!tls) return tls.error();
    link->tls_ = *std::move(tls);
  }
  auto client = WebSocketClient::create(loop,
                                        {.address = settings.address,
                                         .tls = link->tls_.get(),
                                         .clear_text_anywhere = settings.clear_text,
                                         .connection = client_connection(session.dead_link_after)},
                                        *link);
  if (!client) return client.error();
  link->client_ = *std::move(client);
  link->driver_ = std::make_unique<WorkerDriver>(link->endpoint_, link->decoder_, loop.clock(), link->alarm_,
                                                 *link->client_);
  return link;
}

SchedulerLink::SchedulerLink(EventLoop& loop, WorkerOptions options, const SessionConfig& session,
                             SchedulerLinkHost& host, JsonLog& log, std::uint64_t seed)
    : loop_(loop),
      host_(host),
      log_(log),
      prefix_("r" + std::to_string(seed) + "-"),
      endpoint_(std::move(options), session, seed),
      alarm_(loop, [this] { driver_->on_alarm(); }),
      journal_(kJournal) {}

SchedulerLink::~SchedulerLink() = default;

Result<Done> SchedulerLink::reload_tls(std::string fingerprint) {
  if (tls_ == nullptr) return Done{};
  if (auto reloaded = tls_->reload(); !reloaded) return reloaded;
  endpoint_.set_fingerprint(std::move(fingerprint));
  return Done{};
}

void SchedulerLink::start() {
  endpoint_.start(loop_.now());
}

bool SchedulerLink::is_connected() const {
  return endpoint_.session() != nullptr && endpoint_.session()->is_connected();
}

std::string SchedulerLink::next_id() {
  return prefix_ + std::to_string(++counter_);
}

void SchedulerLink::answer(const OrderKey& key, std::string payload) {
  --orders_;
  if (const auto kept = journal_.complete({key.id, key.corr}, payload, loop_.now().steady); !kept) {
    payload = refused_result(kept.error());
    if (const auto again = journal_.complete({key.id, key.corr}, payload, loop_.now().steady); !again) {
      log_.error("an answer is not kept", {{"id", key.id}, {"reason", again.error().reason}});
    }
  }
  queue_result(key.id, std::move(payload));
}

void SchedulerLink::queue_result(std::string corr, std::string payload) {
  results_.push_back({next_id(), std::move(corr), std::move(payload)});
}

void SchedulerLink::say(std::string_view type, std::string_view payload) {
  if (!is_connected() || is_leaving_) return;
  const std::string id = next_id();
  const auto sent = endpoint_.send(Message{{.type = type, .id = id, .payload = payload}}, loop_.now());
  if (!sent)
    log_.debug("the scheduler is not told", {{"type", type}, {"code", to_string(sent.error().code)}});
}

void SchedulerLink::say_surely(std::string key, std::string_view type, std::string payload) {
  if (sure_.size() >= kSureMax && !sure_.contains(key)) {
    log_.warn("the scheduler will not be told: too much waits for it", {{"type", type}, {"key", key}});
    return;
  }
  sure_.insert_or_assign(std::move(key), Sure{std::string{type}, std::move(payload)});
}

void SchedulerLink::send_sure() {
  while (!sure_.empty() && is_connected() && !is_leaving_) {
    const Sure& next = sure_.begin()->second;
    const std::string id = next_id();
    const auto sent =
        endpoint_.send(Message{{.type = next.type, .id = id, .payload = next.payload}}, loop_.now());
    if (!sent && sent.error().code != ErrorCode::LimitFrame) return;  // later
    trusted_.emplace_back(id, sure_.begin()->first);
    if (trusted_.size() > kSureMax) trusted_.pop_front();
    sure_.erase(sure_.begin());
  }
}

// Of a session that ended: an answer belongs to its order, and what is said surely to the next session,
// unless something newer waits; the rest was of the moment.
void SchedulerLink::take_back(const std::vector<Message>& returned) {
  std::map<std::string, Sure> again;
  for (const Message& message : returned) {
    if (message.type() == kResultType) {
      queue_result(std::string{message.corr()}, std::string{message.payload()});
      continue;
    }
    const auto known = std::ranges::find(trusted_, message.id(), &std::pair<std::string, std::string>::first);
    if (known == trusted_.end()) continue;
    again.insert_or_assign(known->second, Sure{std::string{message.type()}, std::string{message.payload()}});
  }
  trusted_.clear();
  sure_.merge(again);
}

void SchedulerLink::on_opened(ConnectionId id, WebSocketConnection& connection) {
  driver_->on_opened(id, connection);
}

void SchedulerLink::on_message(ConnectionId id, BytesView message, MessageKind kind) {
  driver_->on_message(id, message, kind);
}

void SchedulerLink::on_closed(ConnectionId id, const CloseFacts& facts) {
  if (facts.retry_after) return driver_->on_put_off(id, facts.reason, *facts.retry_after);
  driver_->on_closed(id, facts.code, facts.reason);
}

bool SchedulerLink::take_events() {
  bool is_any = false;
  while (auto event = driver_->poll_event()) {
    is_any = true;
    handle(*event);
  }
  return is_any;
}

void SchedulerLink::handle(OwnerEvent& owner_event) {
  if (const auto* delivered = std::get_if<Delivered>(&owner_event.event)) {
    handle_order(delivered->message);
    endpoint_.own(owner_event.session, delivered->seq + 1, loop_.now());
  } else if (const auto* established = std::get_if<Established>(&owner_event.event)) {
    log_.info("the session to the scheduler is established", {{"resumed", established->resumed}});
    host_.on_scheduler_connected();
  } else if (const auto* ended = std::get_if<Ended>(&owner_event.event)) {
    log_.warn("the session to the scheduler ended", {{"code", ended->code}, {"reason", ended->reason}});
    take_back(ended->returned);
  } else if (const auto* waits = std::get_if<BackingOff>(&owner_event.event)) {
    log_.warn(
        "not connected to the scheduler",
        {{"reason", waits->cause}, {"retry_ms", static_cast<std::uint64_t>(waits->delay / milliseconds{1})}});
  } else if (std::holds_alternative<DrainRequested>(owner_event.event)) {
    host_.on_scheduler_drains();
  } else if (const auto* refused = std::get_if<Refused>(&owner_event.event)) {
    log_.warn("a frame to or from the scheduler was refused",
              {{"code", to_string(refused->code)}, {"reason", refused->info}});
  }
}

void SchedulerLink::handle_order(const Message& message) {
  if (message.type() == kGrantsType) return host_.on_grants(message.payload());
  if (message.type() == kApplicationsType) return host_.on_applications(message.payload());
  const JournalAnswer answer = journal_.begin(message, loop_.now().steady);
  const std::string id{message.id()};
  switch (answer.verdict) {
    case JournalVerdict::New:
      ++orders_;
      return host_.on_order({id, std::string{message.corr()}}, message.type(), message.payload());
    case JournalVerdict::InProgress:
      return;
    case JournalVerdict::Done:
      return queue_result(id, std::string{answer.result});
    case JournalVerdict::Conflict:
    case JournalVerdict::Full:
      return queue_result(id, refused_result({*refusal_code(answer.verdict), Blame::Peer,
                                              answer.verdict == JournalVerdict::Full
                                                  ? "this runtime's journal is full; try again later"
                                                  : "an order of this id with another content is known"}));
  }
}

void SchedulerLink::send_results() {
  while (!results_.empty()) {
    const Waiting& next = results_.front();
    const auto sent = endpoint_.send(
        Message{{.type = kResultType, .id = next.id, .payload = next.payload, .corr = next.corr}},
        loop_.now());
    if (!sent && sent.error().code != ErrorCode::LimitFrame) return;  // later
    if (!sent) {
      log_.error("an answer is larger than a message can be and is not sent", {{"corr", next.corr}});
    }
    results_.pop_front();
  }
}

void SchedulerLink::flush() {
  journal_.handle_timeout(loop_.now().steady);
  send_results();
  send_sure();
  if (is_leaving_ && results_.empty()) endpoint_.complete_drain(loop_.now());
  driver_->flush(std::exchange(is_idle_, false));
}

void SchedulerLink::leave() {
  if (std::exchange(is_leaving_, true)) return;
  endpoint_.drain("the runtime ends", kLeaveDeadline, loop_.now());
}

}  // namespace windlass::runtime
