// A world from one seed around the scheduler's core and its applications: agents and runtimes that are cut
// off, killed and left dead or brought back, operators who assign, unassign and change settings, a store that
// fails and a process that dies. Oracles watch every row that becomes durable and every order that leaves; in
// the end nothing hurts any more and every place must be filled with what was deployed last.
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
#include "tests/sim/scheduler/core_world.h"

namespace windlass::sim {

inline const TenantId kFleetTenant{"acme"};
inline const std::string kFleetApp = "hello";

struct FleetStats {
  std::uint64_t assigned = 0;
  std::uint64_t lost = 0;      // assignments
  std::uint64_t replaced = 0;  // by another worker
  std::uint64_t reloads = 0;   // of settings
  std::uint64_t moves = 0;     // to another runtime
  std::uint64_t crashes = 0;
  std::uint64_t left_dead = 0;  // agents
  std::uint64_t resumed = 0;    // after their runtime was short of memory
  std::uint64_t unable = 0;     // language workers that failed behind their agent
  std::uint64_t refused = 0;    // orders to workers that had a place
};

class FleetWorld final {
 public:
  explicit FleetWorld(std::uint64_t seed);
  // Nothing: every promise held.
  std::optional<BrokenPromise> run();
  const FleetStats& stats() const { return stats_; }

 private:
  // What an agent's worker is.
  struct Held {
    std::string code_version = {};  // empty: a placeholder
    std::string metadata_version = {};
    std::string settings = {};
    friend bool operator==(const Held&, const Held&) = default;
  };
  struct Order {
    std::string id;
    std::string type;
    std::string payload;
  };
  struct Peer {
    WorkerKey key;
    Role role = Role::Worker;
    bool is_dead = false;
    Instant back_at{};  // of a dead one that comes back
    std::optional<SessionRef> session = {};
    bool is_detached = false;
    Seq next_seq = 0;
    // Of a worker.
    Held held = {};
    std::string runtime = "r1";
    bool is_unable = false;     // its language worker does not run
    bool stays_unable = false;  // to the end
    enum class Drained : std::uint8_t { No, ForMemory, ByOrder } drained = Drained::No;
    bool was_short = false;     // it said once that it was drained for want of memory
    bool is_reloading = false;  // its process is started anew, with other settings
    std::vector<Order> orders = {};
    std::map<std::string, std::string> journal = {};  // results by order
    std::uint64_t epoch = 0;                          // the highest that it was told
    std::set<std::string> seen = {};                  // orders that were ever sent to it
    // Of a runtime.
    bool is_pressed = false;                     // short of memory
    std::optional<WallTime> pressed_since = {};  // as the present process was told
    std::map<std::string, std::string> told = {};
  };

  void start_process();
  void crash();
  void act();
  void calm_down();
  std::string unsettled() const;

  void operate();
  void deploy();
  void hurt(Peer& peer);
  void heal(Peer& peer);
  void open(Peer& peer);
  void say(Peer& peer, std::string_view type, const std::string& payload, const std::string& corr = {});
  void say_status(Peer& peer);
  void work(Peer& peer);
  void refuse(Peer& peer, const Order& order);
  void beat();
  void pass(Duration time);

  void poll();
  void finish_batch(bool may_hurt);
  void apply(const WriteBatch& writes);
  void do_effects(const Effects& effects);
  void do_send(const Send& send);
  void do_tell(const Tell& tell);
  void note_assignment(const AssignmentRecord* before, const AssignmentRecord& now);

  Peer* owner_of(SessionRef session);
  std::size_t alive() const;
  bool is_anybody_free() const;
  bool chance(std::uint64_t percent) { return random_.below(std::uint64_t{100}) < percent; }
  void fail(std::string oracle, std::string what);

  Random random_;
  CoreOptions options_;
  Now now_{Instant{seconds{1000}}, WallTime{seconds{1'700'000'000}}};
  std::shared_ptr<MemoryImage> image_ = std::make_shared<MemoryImage>();
  std::unique_ptr<SchedulerCore> core_;
  RowReader reader_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::optional<Effects> batch_;
  bool is_store_full_ = false;
  bool is_calm_ = false;

  std::map<WorkerKey, AssignmentRecord> rows_;  // as stored
  std::set<WorkerKey> coming_back_;             // to a place that nobody took: they served nothing before
  std::set<std::string> commands_;              // rows of orders that were ever stored
  std::int64_t places_ = 0;                     // that operators asked for and did not take back
  std::map<std::string, std::string> active_;   // by application, as stored
  std::uint64_t deployed_ = 0;                  // of the metadata version: m1, m2, ...
  std::uint64_t settings_ = 0;                  // their last value
  std::uint64_t next_session_ = 0;
  std::uint64_t next_request_ = 0;
  std::uint64_t next_id_ = 0;
  FleetStats stats_;
  std::optional<BrokenPromise> broken_;
};

}  // namespace windlass::sim
