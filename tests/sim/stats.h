// Counters of what a world did and suffered, added up over seeds and printed at the end: a simulator whose
// faults do not bite shows it here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace windlass::sim {

// clang-format off
#define WINDLASS_SIM_COUNTERS(X)                                                                         \
  /* size of the worlds */                                                                               \
  X(simulated_ms) X(actions) X(workers) X(connections) X(messages) X(bytes) X(commands) X(events)        \
  /* faults */                                                                                           \
  X(cuts) X(traffic_cuts) X(half_open_cuts) X(late_closes) X(stalls) X(delay_spikes) X(slow_readers) X(dials_refused)    \
  X(dials_hung) X(swizzles) X(replays) X(messages_lost) X(thieves) X(wall_jumps) X(freezes) X(suspends) X(scheduler_crashes)                    \
  X(worker_crashes) X(commits_lost) X(commits_unconfirmed) X(torn_writes) X(twins) X(key_rotations)      \
  X(token_rotations) X(revocations) X(scheduler_drains) X(worker_drains) X(load_drains) X(restarts)      \
  X(hostile_connections) X(lies) X(credit_closed) X(version_changes) X(conflicts) X(owner_resets)        \
  /* what came of them */                                                                                \
  X(sessions) X(resumes) X(replayed) X(ends) X(resets) X(drained) X(expired) X(superseded)               \
  X(twins_suspected) X(retransmits) X(duplicates) X(early) X(probes) X(would_block) X(blocked_sends) X(blocked_turns)     \
  X(stale_messages) X(stale_closes) X(half_frames) X(refused_frames) X(lost_levels) X(clock_jumps)       \
  X(commands_again) X(answers_from_journal) X(events_again) X(effects) X(drains_completed) X(stops)
// clang-format on

struct Stats {
#define WINDLASS_SIM_FIELD(name) std::uint64_t name = 0;
  WINDLASS_SIM_COUNTERS(WINDLASS_SIM_FIELD)
#undef WINDLASS_SIM_FIELD
  // Waiting times before a dial, as tenths of what the backoff law allows.
  std::array<std::uint64_t, 10> backoff_deciles{};

  void add(const Stats& other) {
#define WINDLASS_SIM_ADD(name) name += other.name;
    WINDLASS_SIM_COUNTERS(WINDLASS_SIM_ADD)
#undef WINDLASS_SIM_ADD
    for (std::size_t i = 0; i < backoff_deciles.size(); ++i) backoff_deciles[i] += other.backoff_deciles[i];
  }

  template <class Visit>
  void each(const Visit& visit) const {
#define WINDLASS_SIM_VISIT(name) visit(std::string_view{#name}, name);
    WINDLASS_SIM_COUNTERS(WINDLASS_SIM_VISIT)
#undef WINDLASS_SIM_VISIT
  }
};

}  // namespace windlass::sim
