// What the scheduler's endpoint keeps per connection and per session. Private to scheduler_endpoint.cc and
// scheduler_gate.cc.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "protocol/session/scheduler_endpoint.h"

namespace windlass {

// Either kind has one place in the timer queue.
struct SchedulerEndpoint::Timed {
  explicit Timed(Record* r) : record(r), node(this) {}
  explicit Timed(Connection* c) : connection(c), node(this) {}
  Record* record = nullptr;
  Connection* connection = nullptr;
  TimerQueue<Timed>::Node node;
};

struct SchedulerEndpoint::Connection {
  // A frame of the greeting, filled in when it leaves.
  struct Greeting {
    enum class Kind : std::uint8_t { Ack, Accept, Reset } kind = Kind::Ack;
    std::string for_id{};  // of an ack
    std::string code{};    // of a reset
    std::string reason{};
    std::optional<Duration> retry_after{};
    bool resumed = false;
  };

  // What only a connection that is greeted needs. Accepted ones give it back: there are many, and most are
  // idle.
  struct Gate {
    WorkerProfile profile;
    Ring<Greeting> greetings;
    Greeting current;  // the views of the last frame given out point here
    std::string token;
    std::string frame_id;
  };

  Connection(ConnectionId i, PeerFacts p) : id(i), peer(std::move(p)), timed(this) {}

  Gate& gate() {
    if (!gate_or_none) gate_or_none = std::make_unique<Gate>();
    return *gate_or_none;
  }
  bool is_greeting() const { return gate_or_none && !gate_or_none->greetings.empty(); }

  ConnectionId id;
  PeerFacts peer;
  Lifecycle lifecycle;
  std::optional<Revision> revision;
  std::string tenant;
  std::string instance_id;
  Role role = Role::Worker;
  TenantAccount* account = nullptr;  // from its handshake on
  TenantAccount::Place waiting;      // while it is pending, from its handshake on
  SessionHandle session{0};          // once accepted; stays when another connection took it over
  Record* record = nullptr;          // while this connection carries it
  std::unique_ptr<Gate> gate_or_none;
  std::uint64_t frame_counter = 0;
  std::uint64_t number = 0;  // in the order in which they were opened
  std::optional<CloseRequest> close;
  bool pending = true;  // neither accepted nor refused yet
  bool accepted = false;
  bool closed = false;  // a close was handed out: nothing is sent or heard any more
  bool dirty = false;
  bool busy = false;
  Timed timed;  // the stage's deadline
};

struct SchedulerEndpoint::Record {
  Record(SessionHandle h, SessionIdentity identity, const SessionConfig& config, std::uint64_t seed,
         TenantAccount* account)
      : handle(h), session(Side::Scheduler, std::move(identity), config, seed, account), timed(this) {}

  SessionHandle handle;
  Session session;
  Connection* connection = nullptr;     // the one that counts; anything older is fenced off
  std::uint64_t connection_number = 0;  // of that one, or of the last one
  // As the owner knows it. A registration in READY says it anew, but for the names of the handshake.
  std::shared_ptr<const WorkerProfile> profile;
  // Accepts of this connection that are not proved to have arrived, oldest first.
  struct SentAccept {
    std::string frame_id;
    std::uint64_t token_gen;
  };
  std::vector<SentAccept> accepts;
  std::uint64_t token_gen = 0;  // of the newest token issued
  std::uint64_t token_gen_proved = 0;
  std::optional<Instant> took_over_at;  // it began by replacing a connection that still stood
  std::optional<Instant> rotate_at;
  std::optional<Instant> expire_at;   // while there is no connection
  std::optional<Instant> restart_at;  // its turn when the scheduler stops
  bool bound = true;                  // still in the indexes
  TenantAccount::Place place;         // likewise, among its tenant's sessions
  // Of its stream, what the endpoint's counters hold already.
  std::uint64_t duplicates = 0;
  std::uint64_t retransmits = 0;
  std::uint64_t spurious_retransmits = 0;
  std::uint64_t outside_window = 0;
  Timed timed;
};

}  // namespace windlass
