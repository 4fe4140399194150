// The two endpoints, the link between them and their owners, for session_operations.cc. Frames travel as
// text, so that each one that leaves a session is held against the schemas as well.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "protocol/codec/decode.h"
#include "tests/support/session_ledger.h"
#include "tests/support/session_operations.h"
#include "tests/support/session_pair.h"

namespace windlass::testing {

using From = SessionLedger::From;

class OperationsWorld {
 public:
  OperationsWorld(Choices& choices, bool trace);

  // Operations. Each leaves both endpoints polled dry.
  void send_from_worker();
  void send_from_scheduler();
  void own_at_worker(bool all);
  void own_at_scheduler(bool all);
  void deliver(std::size_t packets_max);
  void damage_link();  // loses, repeats or swaps packets, as no honest link would
  void cut();
  void notice_cuts();
  void advance(Duration by);
  void change_credit();
  void toggle_busy();
  void disturb();  // drains, resets, rotations, bad frames, clock jumps, idle calls
  void restart_worker();
  void restart_scheduler();

  // Stops all trouble and gives everything the time it needs.
  void calm_down();
  void check_promises();
  std::string unsettled() const;  // what still waits for something; empty: nothing does

  bool is_worker_closed() const { return worker_->state() == SessionState::Closed; }

  SessionLedger ledger;
  OperationsReport report;

 private:
  struct Packet {
    std::string bytes;
    MessageKind kind = MessageKind::Text;
    std::optional<CloseRequest> close;  // instead of a message
  };
  struct Link {
    ConnectionId worker_id;
    ConnectionId scheduler_id;
    bool worker_open = true;
    bool scheduler_open = true;
    bool cut = false;
    std::deque<Packet> up{};
    std::deque<Packet> down{};
  };

  Now now() const;
  void note(std::string_view who, std::string_view what) const;
  void pump();
  bool pump_worker();
  bool pump_scheduler();
  void dial(ConnectionId id);
  void deliver_up(Link& link);
  void deliver_down(Link& link);
  void on_worker_event(SessionEvent& event);
  void on_scheduler_event(OwnerEvent& event);
  Message next_message(std::string_view prefix, std::uint64_t bytes);
  Link* link_of_worker(ConnectionId id);
  Link* link_of_scheduler(ConnectionId id);
  std::optional<SessionHandle> live_handle() const { return scheduler_->find("acme", "i-1"); }
  std::string worker_session() const;
  void make_worker();
  void make_scheduler();

  Choices& choices_;
  bool trace_;
  Revision revision_;
  SessionConfig worker_config_;
  SessionConfig scheduler_config_;
  AdmitAll admission_;
  TokenAuthority tokens_;
  std::unique_ptr<WorkerEndpoint> worker_;
  std::unique_ptr<SchedulerEndpoint> scheduler_;
  Decoder decoder_;
  std::deque<Link> links_;
  std::map<SessionHandle, std::string> session_ids_;
  std::string accepted_session_;  // of the last accept that reached the worker
  std::string worker_session_;
  std::optional<std::uint64_t> worker_refused_;     // the smallest size that would have blocked
  std::optional<std::uint64_t> scheduler_refused_;  // likewise
  std::uint64_t next_connection_ = 1;
  std::uint64_t next_message_ = 0;
  std::uint64_t next_seed_ = 1;
  Duration elapsed_ = seconds{1};
  Duration wall_offset_{};
  bool worker_busy_ = false;
  bool dials_succeed_ = true;
};

}  // namespace windlass::testing
