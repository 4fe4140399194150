// The business side of one worker process: does each command exactly once with the production journal,
// answers it, and passes on events. It takes responsibility for a command (own) only when effect, journal
// record and answer are on the disk in one commit; answers and events stay on the disk until they are
// acknowledged.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "protocol/session/journal.h"
#include "protocol/session/journal_log.h"
#include "protocol/session/worker_endpoint.h"
#include "tests/sim/disk.h"
#include "tests/sim/duty_checker.h"
#include "tests/sim/machine.h"
#include "tests/sim/session_checker.h"

namespace windlass::sim {

// What a worker sends: an answer (corr is the command's id) or an event.
struct Outgoing {
  std::string type;
  std::string id;
  std::string corr;
  std::string payload;
  std::string attachment;  // empty: none
};

// What survives a crash of a worker, beside the journal's log.
struct WorkerStore {
  std::map<std::uint64_t, Outgoing> outbox;  // in order of their numbers
  std::uint64_t next_number = 0;
};

struct OwnerParts {
  Context& context;
  Machine& machine;
  SessionChecker& sessions;
  DutyChecker& duties;
};

class WorkerOwner final {
 public:
  WorkerOwner(const OwnerParts& parts, WorkerEndpoint& endpoint, Disk& disk, WorkerStore& store,
              Duration own_delay_max, Duration work_time_max);

  void handle(OwnerEvent event);
  void pump();  // sends what it can, says that a drain is complete
  void accept_event(Outgoing event);
  void drain(Duration deadline);
  void set_memory(double percent) { memory_percent_ = percent; }
  void lose_process();  // the machine crashed: nobody will be told

  bool wants_credit() const { return blocked_ && wants_credit_; }
  Duration blocked_since() const { return blocked_since_; }
  bool is_drained() const { return drained_; }
  std::string unfinished() const;  // what is left to do; empty: nothing
  const std::string& session() const { return session_; }

 private:
  struct Sent {
    Seq seq = 0;
    std::uint64_t number = 0;  // in the outbox; 0: an answer from the journal alone
    Outgoing message;
  };
  struct Waiting {
    SessionHandle session{0};
    Seq seq = 0;
  };

  void recover_journal();
  void start_session(SessionHandle handle);
  void end_session(const Ended& ended);
  void deliver(Delivered delivered);
  void start_work(const Message& message, Waiting from);
  void finish_work(const std::string& id, const std::string& result);
  void refuse(const std::string& id, Waiting from);
  void settle(const Waiting& from);  // the frame may be owned
  void acknowledge(Seq next);
  void queue(std::uint64_t number, Outgoing message);
  Now now() const { return parts_.machine.clock().now(); }

  OwnerParts parts_;
  WorkerEndpoint& endpoint_;
  Disk& disk_;
  WorkerStore& store_;
  Duration own_delay_max_;
  Duration work_time_max_;
  Journal journal_;
  std::unique_ptr<JournalLog> journal_log_;

  std::string session_;      // empty: none
  SessionHandle handle_{0};  // of the session under way; a late completion is of an earlier one
  std::map<std::string, std::vector<Waiting>> in_progress_;  // by command
  std::uint64_t unstarted_ = 0;
  std::set<Seq> settled_;
  Seq owned_next_ = 0;
  std::deque<Sent> outbox_;  // to be sent in this session; seq is not known yet
  std::deque<Sent> sent_;
  std::set<std::string> queued_;  // ids of this session: none is used twice
  double memory_percent_ = 10;
  bool blocked_ = false;
  bool wants_credit_ = false;  // that is why
  Duration blocked_since_{};
  bool draining_ = false;
  bool drain_is_ours_ = false;
  bool complete_said_ = false;
  bool drained_ = false;
};

}  // namespace windlass::sim
