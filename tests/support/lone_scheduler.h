// A scheduler's endpoint alone: the test speaks for its workers, frame by frame, and sees every frame, close
// and event that comes out. For what an honest worker would never do.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/note.h"
#include "tests/support/session_pair.h"

namespace windlass::testing {

class LoneScheduler {
 public:
  explicit LoneScheduler(SessionConfig c = {}, std::uint64_t seed = 7)
      : config(c),
        tokens(test_tokens()),
        endpoint({.scheduler_id = "sched"}, config, admission, tokens, seed) {}

  Now now() const {
    return {Instant{elapsed}, WallTime{milliseconds{1'700'000'000'000}} +
                                  std::chrono::duration_cast<milliseconds>(elapsed + wall_offset)};
  }

  ConnectionId open(PeerFacts peer = {}) {
    const ConnectionId id{++opened_};
    endpoint.handle_opened(id, std::move(peer), now());
    settle();
    return id;
  }

  void say(ConnectionId connection, FrameBody body, const Envelope& envelope = {}) {
    Frame frame;
    const std::string id = envelope.id.empty() ? numbered("x", said_++) : envelope.id;
    frame.id = id;
    frame.ts = now().wall;
    frame.tenant = envelope.tenant.empty() ? std::string_view{"acme"} : envelope.tenant;
    frame.sender_role = envelope.role.value_or(Role::Worker);
    frame.sender_id = envelope.sender_id.empty() ? std::string_view{"i-1"} : envelope.sender_id;
    frame.corr = envelope.corr;
    frame.seq = envelope.seq;
    frame.ack_request = envelope.ack_request;
    frame.body = std::move(body);
    endpoint.handle_frame(connection, frame, now());
    if (settle_at_once) settle();
  }

  void say_data(ConnectionId connection, Seq seq, std::string_view payload = "{}", bool ack_request = false) {
    say(connection, Data{"biz.test", payload, {}},
        {.id = numbered("d", seq), .seq = seq, .ack_request = ack_request});
  }

  void settle() {
    for (bool moved = true; moved;) {
      moved = false;
      while (auto out = endpoint.poll_transmit(now())) {
        moved = true;
        notes[out->connection].emplace_back(out->frame);
      }
      while (auto close = endpoint.poll_close(now())) {
        moved = true;
        closes[close->connection] = close->request;
        if (shell_closes) endpoint.handle_closed(close->connection, now());
      }
      while (auto event = endpoint.poll_event()) {
        moved = true;
        if (const auto* delivered = std::get_if<Delivered>(&event->event); delivered && own_at_once) {
          endpoint.own(event->session, delivered->seq + 1, now());
        }
        events.push_back(std::move(*event));
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

  static Handshake handshake(std::uint64_t protocol = 2, std::string_view instance = "i-1") {
    Handshake body;
    body.protocol = protocol;
    body.token = "let-me-in";
    body.worker_name = "w1";
    body.worker_instance_id = instance;
    body.version = "1.0";
    body.hostname = "host";
    return body;
  }

  static Register registration() {
    Register body;
    body.runtimes = {"native"};
    return body;
  }

  static Ack ack(Seq owned_next, Credit credit = {256, 1 << 20}) {
    Ack body;
    body.state.emplace();
    body.state->owned_next = owned_next;
    body.state->credit = credit;
    return body;
  }

  // Takes a connection through handshake, registration and the ack of the accept. Gives the accept.
  Note make_ready(ConnectionId connection, std::uint64_t protocol = 2, const Envelope& envelope = {}) {
    greet(connection, protocol, envelope);
    say(connection, registration(), envelope);
    Note accept = last_accept(connection);
    if (protocol == 2) {
      Ack body = ack(0);
      body.for_id = accept.id;
      say(connection, body, envelope);
    }
    notes[connection].clear();
    return accept;
  }

  void greet(ConnectionId connection, std::uint64_t protocol = 2, const Envelope& envelope = {}) {
    say(connection,
        handshake(protocol, envelope.sender_id.empty() ? "i-1" : std::string_view{envelope.sender_id}),
        envelope);
  }

  Resume resume_of(const Note& accept, Seq received_next = 0, Seq earliest_retained = 0) const {
    return {accept.session_id, accept.token, received_next, earliest_retained, {256, 1 << 20}};
  }

  Note last_accept(ConnectionId connection) {
    return of_type(notes[connection], "control.session.accept").back();
  }
  std::vector<Note> resets(ConnectionId connection) { return of_type(notes[connection], "control.reset"); }
  std::vector<Note> acks(ConnectionId connection) { return of_type(notes[connection], "control.ack"); }

  // The code of the one reset that a connection got, with a close after it; empty otherwise.
  std::string refusal(ConnectionId connection) {
    const auto found = resets(connection);
    return found.size() == 1 && closes.contains(connection) ? found[0].code : "";
  }

  SessionHandle handle(std::string_view instance = "i-1", std::string_view tenant = "acme") const {
    return endpoint.find(tenant, instance).value();
  }
  const Session* session(std::string_view instance = "i-1") const {
    const auto found = endpoint.find("acme", instance);
    return found ? endpoint.session(*found) : nullptr;
  }

  template <class Event>
  std::vector<Event> seen() const {
    std::vector<Event> found;
    for (const auto& [session, event] : events) {
      if (const auto* match = std::get_if<Event>(&event)) found.push_back(*match);
    }
    return found;
  }

  SessionConfig config;
  AdmitAll admission;
  TokenAuthority tokens;
  SchedulerEndpoint endpoint;
  Duration elapsed = seconds{1};
  Duration wall_offset{};
  bool own_at_once = true;
  bool settle_at_once = true;  // else frames pile up within one turn of the loop
  bool shell_closes = true;    // closes are carried out and reported at once
  std::map<ConnectionId, std::vector<Note>> notes;
  std::map<ConnectionId, CloseRequest> closes;
  std::vector<OwnerEvent> events;

 private:
  std::uint64_t opened_ = 0;
  std::uint64_t said_ = 0;
};

}  // namespace windlass::testing
