// A worker and a scheduler on a fake link: frames pass by value of their views, in order, on fake time. No
// JSON, no sockets. Tests cut the link, hold frames back, and look at what each owner was told.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/session/scheduler_endpoint.h"
#include "protocol/session/worker_endpoint.h"

namespace windlass::testing {

class AdmitAll final : public Admission {
 public:
  Result<Done> admit(const AdmissionRequest& request) const override {
    if (request.handshake.token != "let-me-in") {
      const auto code =
          request.handshake.token.empty() ? ErrorCode::AuthMissingToken : ErrorCode::AuthInvalidToken;
      return Error{code, Blame::Peer, "the bearer token is not valid here"};
    }
    return Done{};
  }
  Result<Done> admit_resume(const ResumeRequest& request) const override {
    if (!asks_for_certificates || !request.peer.certificate_fingerprint.empty()) return Done{};
    return Error{ErrorCode::AuthMtlsRequired, Blame::Peer, "a certificate is needed"};
  }
  TenantAccount* account(std::string_view tenant) const override {
    const auto found = accounts.find(tenant);
    return found == accounts.end() ? nullptr : found->second;
  }
  bool asks_for_certificates = false;
  std::map<std::string, TenantAccount*, std::less<>> accounts;
};

inline TokenAuthority test_tokens(Duration lifetime = limits::kTokenLifetime) {
  return TokenAuthority::with_keys({{"k1", std::string(32, 'x')}}, lifetime).value();
}

inline WorkerOptions worker_options(Revision revision = Revision::Two) {
  WorkerOptions options;
  options.tenant = "acme";
  options.instance_id = "i-1";
  options.revision = revision;
  options.auth_token = "let-me-in";
  options.profile.worker_name = "w1";
  options.profile.version = "1.0";
  options.profile.hostname = "host";
  options.profile.runtimes = {"native"};
  return options;
}

// An id for the n-th of something. (GCC 12 warns about `"m" + std::to_string(n)` for no reason.)
template <class Number>
std::string numbered(std::string_view prefix, Number n) {
  std::string text{prefix};
  text += std::to_string(n);
  return text;
}

// A payload of this many bytes.
inline std::string object(std::size_t bytes) {
  std::string text(bytes, ' ');
  text.front() = '{';
  text.back() = '}';
  return text;
}

inline Message message(std::string_view id, std::string_view payload = "{}", std::string_view corr = "") {
  return Message{{.type = "biz.test", .id = id, .payload = payload, .corr = corr}};
}

inline std::vector<std::string> ids_of(const std::vector<Message>& messages) {
  std::vector<std::string> ids;
  ids.reserve(messages.size());
  for (const Message& each : messages) ids.emplace_back(each.id());
  return ids;
}

// The defaults, but for the time before a first retry: a test that is not about waiting does not wait.
inline SessionConfig quick_config() {
  SessionConfig config;
  config.backoff_first = milliseconds{200};
  return config;
}

class SessionPair {
 public:
  explicit SessionPair(WorkerOptions options = worker_options(), SessionConfig c = quick_config(),
                       std::uint64_t seed = 1)
      : config(c),
        tokens(test_tokens()),
        worker(std::move(options), config, seed),
        scheduler({.scheduler_id = "sched"}, config, admission, tokens, seed + 1) {}

  Now now() const {
    return {Instant{elapsed}, WallTime{milliseconds{1'700'000'000'000}} +
                                  std::chrono::duration_cast<milliseconds>(elapsed + wall_offset)};
  }

  // Runs until nothing moves at this instant.
  void settle() {
    for (bool moved = true; moved;) {
      moved = pump_dial();
      while (auto frame = worker.poll_transmit(now())) {
        moved = true;
        if (link_up && filter(*frame, true)) scheduler.handle_frame(current, *frame, now());
      }
      while (auto close = worker.poll_close(now())) {
        moved = true;
        worker_closes.push_back(*close);
        drop_scheduler_side();
      }
      while (auto out = scheduler.poll_transmit(now())) {
        moved = true;
        if (link_up && out->connection == current && filter(out->frame, false)) {
          worker.handle_frame(worker.connection(), out->frame, now());
        }
      }
      while (auto close = scheduler.poll_close(now())) {
        moved = true;
        scheduler_closes.push_back(close->request);
        const bool was_current = close->connection == current && link_up;
        scheduler.handle_closed(close->connection, now());
        if (was_current) {
          link_up = false;
          worker.handle_closed(worker.connection(), close->request.code, close->request.reason, now());
        }
      }
      while (auto event = worker.poll_event()) {
        moved = true;
        on_worker_event(*event);
        worker_events.push_back(std::move(event->event));
      }
      while (auto event = scheduler.poll_event()) {
        moved = true;
        on_scheduler_event(*event);
        scheduler_events.push_back(std::move(*event));
      }
    }
  }

  // Lets time pass, firing every timer on its way.
  void advance(Duration by) {
    const Duration end = elapsed + by;
    settle();
    for (;;) {
      std::optional<Instant> next = worker.poll_timeout();
      const auto other = scheduler.poll_timeout();
      if (!next || (other && *other < *next)) next = other;
      if (!next || next->time_since_epoch() > end) break;
      elapsed = std::max(elapsed, next->time_since_epoch());
      worker.handle_timeout(now());
      scheduler.handle_timeout(now());
      settle();
    }
    elapsed = end;
  }

  void start() {
    worker.start(now());
    settle();
  }

  // Both ends learn that the connection is gone.
  void cut() {
    if (!link_up) return;
    link_up = false;
    scheduler.handle_closed(current, now());
    worker.handle_closed(worker.connection(), 1006, "", now());
    settle();
  }

  // Only the worker notices; the scheduler still believes in the old connection.
  void cut_unnoticed() {
    link_up = false;
    worker.handle_closed(worker.connection(), 1006, "", now());
    settle();
  }

  SessionHandle handle() const { return scheduler.find("acme", worker_instance).value(); }
  const Session& scheduler_session() const { return *scheduler.session(handle()); }

  std::vector<std::string> delivered_to_worker() const { return ids(worker_delivered); }
  std::vector<std::string> delivered_to_scheduler() const { return ids(scheduler_delivered); }

  template <class Event>
  std::vector<Event> seen_by_worker() const {
    std::vector<Event> found;
    for (const auto& event : worker_events) {
      if (const auto* match = std::get_if<Event>(&event)) found.push_back(*match);
    }
    return found;
  }
  template <class Event>
  std::vector<Event> seen_by_scheduler() const {
    std::vector<Event> found;
    for (const auto& [session, event] : scheduler_events) {
      if (const auto* match = std::get_if<Event>(&event)) found.push_back(*match);
    }
    return found;
  }

  SessionConfig config;
  AdmitAll admission;
  TokenAuthority tokens;
  WorkerEndpoint worker;
  SchedulerEndpoint scheduler;
  std::string worker_instance = "i-1";

  Duration elapsed = seconds{1};
  Duration wall_offset{};  // moves the wall clock alone
  bool link_up = false;
  bool dials_succeed = true;
  bool own_at_once = true;  // owners take responsibility as soon as a frame is delivered
  // False drops the frame. `from_worker` says the direction.
  std::function<bool(const Frame&, bool from_worker)> filter = [](const Frame&, bool) { return true; };

  std::vector<SessionEvent> worker_events;
  std::vector<OwnerEvent> scheduler_events;
  std::vector<Delivered> worker_delivered;
  std::vector<Delivered> scheduler_delivered;
  std::vector<CloseRequest> worker_closes;
  std::vector<CloseRequest> scheduler_closes;
  ConnectionId current{0};
  std::uint64_t dials = 0;

 private:
  bool pump_dial() {
    const auto dial = worker.poll_dial(now());
    if (!dial) return false;
    ++dials;
    if (!dials_succeed) {
      worker.handle_closed(*dial, 1006, "refused", now());
      return true;
    }
    current = ConnectionId{current.value() + 1};
    link_up = true;
    scheduler.handle_opened(current, {}, now());
    worker.handle_opened(*dial, now());
    return true;
  }

  void drop_scheduler_side() {
    if (!link_up) return;
    link_up = false;
    scheduler.handle_closed(current, now());
  }

  void on_worker_event(const OwnerEvent& event) {
    if (const auto* delivered = std::get_if<Delivered>(&event.event)) {
      worker_delivered.push_back(*delivered);
      if (own_at_once) worker.own(event.session, delivered->seq + 1, now());
    }
  }

  void on_scheduler_event(const OwnerEvent& event) {
    if (const auto* delivered = std::get_if<Delivered>(&event.event)) {
      scheduler_delivered.push_back(*delivered);
      if (own_at_once) scheduler.own(event.session, delivered->seq + 1, now());
    }
  }

  static std::vector<std::string> ids(const std::vector<Delivered>& delivered) {
    std::vector<std::string> out;
    out.reserve(delivered.size());
    for (const auto& each : delivered) out.emplace_back(each.message.id());
    return out;
  }
};

}  // namespace windlass::testing
