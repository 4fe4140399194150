// The business side of the scheduler process: commands are outbox rows on the disk before they are sent; a
// row is done when its result is on the disk. Rows that are not done are sent again in the next session,
// after a reset, a crash or a new registration, under the same id. A result or an event is owned once it is
// stored.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "protocol/session/scheduler_endpoint.h"
#include "tests/sim/disk.h"
#include "tests/sim/duty_checker.h"
#include "tests/sim/worker_owner.h"

namespace windlass::sim {

struct Row {
  std::string id;
  std::string instance;  // the worker it is for
  std::string payload;
  std::string attachment;    // empty: none
  bool is_conflict = false;  // the id of a command that is done, with another body: must be refused
  bool is_acknowledged = false;
  bool is_done = false;
};

// What survives a crash of the scheduler.
struct SchedulerStore {
  std::map<std::uint64_t, Row> rows;
  std::set<std::string> events;                 // ids
  std::map<std::string, WallTime> revocations;  // by instance
  std::uint64_t next_row = 0;
};

class SchedulerOwner final {
 public:
  SchedulerOwner(const OwnerParts& parts, SchedulerEndpoint& endpoint, Disk& disk, SchedulerStore& store,
                 Duration own_delay_max, bool trusts_acks);

  void handle(OwnerEvent event);
  void pump();
  // Stored first; `confirm` tells the client that the command will be done.
  void submit(const Row& row, std::function<void()> confirm);
  void lose_process();
  // A drain has begun that must have ended the session by then.
  void expect_drained(SessionHandle handle, Duration deadline);

  bool is_idle() const;
  std::optional<SessionHandle> session_of(const std::string& instance) const;
  std::vector<SessionHandle> sessions() const;
  std::optional<Instant> drain_due(SessionHandle handle) const;
  const std::string* session_id(SessionHandle handle) const;

 private:
  struct Link {
    std::string instance;
    std::string session;
    std::set<std::uint64_t> known;                   // rows given to this session: none goes twice
    std::deque<std::uint64_t> queue;                 // of them, to be sent
    std::deque<std::pair<Seq, std::uint64_t>> sent;  // rows not acknowledged yet
    std::set<Seq> settled;
    Seq owned_next = 0;
    Seq delivered_next = 0;
    bool blocked = false;
    bool draining = false;
    bool is_short = false;             // of memory
    std::optional<Instant> drain_due;  // its deadline: the session must be over by then
  };

  static void queue(Link& link, std::uint64_t row);
  void start_session(SessionHandle handle, const std::string& instance);
  void end_session(SessionHandle handle, const Ended& ended);
  void deliver(SessionHandle handle, Delivered delivered);
  void store_delivered(const std::string& id, const std::string& corr);
  void settle(SessionHandle handle, Seq seq);
  void acknowledge(Link& link, Seq next);
  void send_rows(SessionHandle handle, Link& link);
  Now now() const { return parts_.machine.clock().now(); }

  OwnerParts parts_;
  SchedulerEndpoint& endpoint_;
  Disk& disk_;
  SchedulerStore& store_;
  Duration own_delay_max_;
  bool trusts_acks_;
  std::map<SessionHandle, Link> links_;
};

}  // namespace windlass::sim
