// A world from one seed around the scheduler's core: operators who submit and repeat, workers with journals,
// sessions that end, a store that fills up, and a process that dies before, after and in the middle of
// commits. Oracles watch every row that becomes durable and everything that leaves; in the end nothing hurts
// any more and every duty must be done.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "protocol/base/random.h"
#include "scheduler/adapters/memory_store.h"
#include "scheduler/core/scheduler_core.h"
#include "tests/sim/scheduler/model_worker.h"
#include "tests/sim/seed_run.h"

namespace windlass::sim {

struct CoreStats {
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;
  std::uint64_t results = 0;
  std::uint64_t expired = 0;
  std::uint64_t crashes = 0;
  std::uint64_t commits = 0;
  std::uint64_t commits_failed = 0;
  std::uint64_t sessions = 0;
  std::uint64_t resent = 0;
  std::uint64_t from_journal = 0;
  std::uint64_t lost = 0;   // commands of workers that were gone for too long
  std::uint64_t moved = 0;  // to another worker than the first
  std::uint64_t dropped = 0;
};

inline std::string text_of(const CommandKey& key) {
  return key.tenant.value() + "/" + key.id;
}

class CoreWorld final {
 public:
  explicit CoreWorld(std::uint64_t seed);
  // Nothing: every promise held.
  std::optional<BrokenPromise> run();
  const CoreStats& stats() const { return stats_; }

 private:
  struct Asked {
    std::optional<CommandKey> command;  // of a submission
    bool has_other_body = false;
  };
  // Whom a command is for, and who was given it.
  struct Target {
    WorkerKey worker;  // of a language: the tenant alone
    bool is_language = false;
    bool is_idempotent = false;
    WallTime asked_at{};
    std::set<WorkerKey> given_to;
  };
  // What the store has had under one key, as far as promises go.
  struct Known {
    bool is_accepted = false;
    bool is_stored = false;
    bool is_finished = false;
    std::string outcome;
    std::uint64_t number = 0;
  };

  void start_process();
  void crash();
  void act();
  void calm_down();
  std::string unsettled() const;

  void submit();
  void ask_something();
  void open_session(ModelWorker& worker);
  void end_session(ModelWorker& worker, const std::string& code);
  void deliver_one(ModelWorker& worker);
  void report(const ModelWorker& worker);
  void pass(Duration time);

  void poll();
  void finish_batch(bool may_hurt);
  void apply(const WriteBatch& writes);
  void note_command(const std::string& key, const CommandRecord& record);
  void note_failure(const std::string& row, const CommandRecord& record);
  void note_message(const InboxRecord& record, const std::string& row);
  void check_loss();
  void check_denials(const Effects& effects);
  void note_absence(const WorkerKey& worker);
  bool is_away_since(const WorkerKey& worker, WallTime since) const;
  void do_effects(const Effects& effects, std::size_t count);
  void do_own(const Own& own);
  void do_send(const Send& send);
  void do_command(const SessionCommand& command);
  void do_reply(const Reply& reply);

  ModelWorker* owner_of(SessionRef session);
  bool chance(std::uint64_t percent) { return random_.below(std::uint64_t{100}) < percent; }
  void fail(std::string oracle, std::string what);

  Random random_;
  CoreOptions options_;
  Now now_{Instant{seconds{1000}}, WallTime{seconds{1'700'000'000}}};
  std::shared_ptr<MemoryImage> image_ = std::make_shared<MemoryImage>();
  std::unique_ptr<SchedulerCore> core_;
  RowReader reader_;
  std::vector<std::unique_ptr<ModelWorker>> workers_;
  std::optional<Effects> batch_;  // outstanding
  bool is_store_full_ = false;
  bool is_calm_ = false;

  std::map<RequestId, Asked> asked_;
  std::map<CommandKey, Known> known_;
  std::set<CommandKey> was_finished_;  // at any time
  std::set<CommandKey> announced_;     // Finished was said of this incarnation
  std::vector<CommandKey> used_;       // every command ever asked for
  std::map<CommandKey, Target> target_;
  struct Absence {
    WallTime from{};
    std::optional<WallTime> until;
  };
  std::map<WorkerKey, std::vector<Absence>> absences_;
  std::map<WorkerKey, WallTime> away_since_;             // of workers without a session
  std::map<std::string, std::uint64_t> message_number_;  // by row, of messages that were ever kept
  std::map<std::string, std::uint64_t> messages_;        // rows of the inbox that were ever written
  std::uint64_t next_session_ = 0;
  std::uint64_t next_request_ = 0;
  std::uint64_t next_command_ = 0;
  CoreStats stats_;
  std::optional<BrokenPromise> broken_;
};

}  // namespace windlass::sim
