// A worker's endpoint alone: the test speaks for the scheduler, frame by frame. For what an honest scheduler
// would never do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/support/note.h"
#include "tests/support/session_pair.h"

namespace windlass::testing {

class LoneWorker {
 public:
  explicit LoneWorker(WorkerOptions options = worker_options(), SessionConfig c = quick_config(),
                      std::uint64_t seed = 7)
      : config(c), endpoint(std::move(options), config, seed) {}

  Now now() const {
    return {Instant{elapsed}, WallTime{milliseconds{1'700'000'000'000}} +
                                  std::chrono::duration_cast<milliseconds>(elapsed + wall_offset)};
  }

  void start() {
    endpoint.start(now());
    settle();
  }

  void say(FrameBody body, const Envelope& envelope = {}) {
    Frame frame;
    const std::string id = envelope.id.empty() ? numbered("y", said_++) : envelope.id;
    frame.id = id;
    frame.ts = now().wall;
    frame.tenant = envelope.tenant.empty() ? std::string_view{"acme"} : envelope.tenant;
    frame.sender_role = envelope.role.value_or(Role::Scheduler);
    frame.sender_id = envelope.sender_id.empty() ? std::string_view{"sched"} : envelope.sender_id;
    frame.corr = envelope.corr;
    frame.seq = envelope.seq;
    frame.ack_request = envelope.ack_request;
    frame.body = std::move(body);
    endpoint.handle_frame(endpoint.connection(), frame, now());
    settle();
  }

  void say_data(Seq seq, std::string_view payload = "{}", bool ack_request = false) {
    say(Data{"biz.test", payload, {}}, {.id = numbered("d", seq), .seq = seq, .ack_request = ack_request});
  }

  static Ack ack_for(std::string_view id) {
    Ack body;
    body.for_id = id;
    return body;
  }

  static Ack ack(Seq owned_next, Credit credit = {256, 1 << 20}) {
    Ack body;
    body.state.emplace();
    body.state->owned_next = owned_next;
    body.state->credit = credit;
    return body;
  }

  static SessionAccept accept(bool resumed = false) {
    SessionAccept body;
    body.session_id = "s-1";
    body.session_token = resumed ? "token-2" : "token-1";
    body.worker_instance_id = "i-1";
    body.resumed = resumed;
    body.credit = {256, 1 << 20};
    body.heartbeat_interval = seconds{30};
    body.resume_ttl = seconds{300};
    body.frame_bytes_max = 1 << 20;
    return body;
  }

  // Answers the handshake, and the registration where there is one.
  void greet() {
    say(ack_for(notes.back().id));
    if (notes.back().type == "control.register") say(ack_for(notes.back().id));
  }

  void make_ready() {
    start();
    greet();
    say(accept(), {.ack_request = true});
    notes.clear();
  }

  void lose_connection(std::uint16_t code = 1006, std::string_view reason = "") {
    endpoint.handle_closed(endpoint.connection(), code, reason, now());
    settle();
  }

  void settle() {
    for (bool moved = true; moved;) {
      moved = false;
      if (const auto dial = endpoint.poll_dial(now())) {
        moved = true;
        ++dials;
        dialled_at.push_back(elapsed);
        if (dials_succeed) {
          endpoint.handle_opened(*dial, now());
        } else {
          endpoint.handle_closed(*dial, 1006, "refused", now());
        }
      }
      while (auto frame = endpoint.poll_transmit(now())) {
        moved = true;
        notes.emplace_back(*frame);
      }
      while (auto close = endpoint.poll_close(now())) {
        moved = true;
        closes.push_back(*close);
      }
      while (auto event = endpoint.poll_event()) {
        moved = true;
        if (const auto* delivered = std::get_if<Delivered>(&event->event); delivered && own_at_once) {
          endpoint.own(event->session, delivered->seq + 1, now());
        }
        events.push_back(std::move(event->event));
      }
    }
  }

  void advance(Duration by) {
    const Duration end = elapsed + by;
    settle();
    for (auto next = endpoint.poll_timeout(); next && next->time_since_epoch() <= end;
         next = endpoint.poll_timeout()) {
      elapsed = std::max(elapsed, next->time_since_epoch());
      endpoint.handle_timeout(now());
      settle();
    }
    elapsed = end;
  }

  template <class Event>
  std::vector<Event> seen() const {
    std::vector<Event> found;
    for (const auto& event : events) {
      if (const auto* match = std::get_if<Event>(&event)) found.push_back(*match);
    }
    return found;
  }

  std::vector<Note> sent(std::string_view type) const { return of_type(notes, type); }

  SessionConfig config;
  WorkerEndpoint endpoint;
  Duration elapsed = seconds{1};
  Duration wall_offset{};
  bool own_at_once = true;
  bool dials_succeed = true;
  std::vector<Note> notes;
  std::vector<CloseRequest> closes;
  std::vector<SessionEvent> events;
  std::vector<Duration> dialled_at;
  std::uint64_t dials = 0;

 private:
  std::uint64_t said_ = 0;
};

}  // namespace windlass::testing
