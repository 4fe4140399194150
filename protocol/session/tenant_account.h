// What all workers of one tenant may take together, and what they have taken. Every loop of a process shares
// the account of a tenant, and the operator may change its terms while sessions are up: hence the atomics,
// each a number of its own that needs no order among the others.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "protocol/base/limits.h"
#include "protocol/base/time.h"
#include "protocol/session/session_config.h"

namespace windlass {

// What a frame that breaks the schema costs beyond being refused.
enum class SchemaMode : std::uint8_t {
  Strict,  // a unit of the session's error budget
  Warn,    // nothing, but the owner is told in full
  Count,   // nothing, and the owner only counts it
};

// As the operator set them. What is not set is bounded as for every session.
struct TenantTerms {
  std::optional<std::uint64_t> sessions_max = std::nullopt;            // with and without a connection
  std::optional<std::uint64_t> pending_handshakes_max = std::nullopt;  // from the handshake to the accept
  std::optional<std::uint64_t> frames_per_second_max = std::nullopt;   // of all its sessions
  std::optional<double> mem_pct_max = std::nullopt;
  std::optional<double> disk_pct_max = std::nullopt;
  std::optional<double> load_hysteresis_pct = std::nullopt;
  // Of sessions that begin from now on: one that is up goes by what it was told.
  std::optional<Duration> heartbeat_interval = std::nullopt;
  std::optional<std::uint32_t> heartbeat_misses_warn = std::nullopt;
  std::optional<std::uint32_t> heartbeat_misses_degraded = std::nullopt;
  std::optional<std::uint32_t> heartbeat_misses_lost = std::nullopt;
  SchemaMode schema_mode = SchemaMode::Strict;
};

// How often a worker speaks, and how many missed heartbeats mean what.
struct HeartbeatLadder {
  Duration interval{};
  std::uint32_t warn = 0;
  std::uint32_t degraded = 0;
  std::uint32_t lost = 0;

  static HeartbeatLadder of(const SessionConfig& config) {
    return {config.heartbeat_interval, config.heartbeat_misses_warn, config.heartbeat_misses_degraded,
            config.heartbeat_misses_lost};
  }
};

class TenantAccount {
 public:
  // One unit of something bounded; dropping it gives the unit back. The account must outlive it.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept : taken_(std::exchange(other.taken_, nullptr)) {}
    Place& operator=(Place&& other) noexcept {
      std::swap(taken_, other.taken_);
      other.release();
      return *this;
    }
    ~Place() { release(); }
    void release() {
      if (taken_ != nullptr) std::exchange(taken_, nullptr)->fetch_sub(1, std::memory_order_relaxed);
    }

   private:
    friend class TenantAccount;
    explicit Place(std::atomic<std::uint64_t>& taken) : taken_(&taken) {}
    std::atomic<std::uint64_t>* taken_ = nullptr;
  };

  // `otherwise` has what the terms leave open.
  explicit TenantAccount(const SessionConfig& otherwise, const TenantTerms& terms = {})
      : mem_pct_otherwise_(otherwise.mem_pct_max),
        disk_pct_otherwise_(otherwise.disk_pct_max),
        hysteresis_otherwise_(otherwise.load_hysteresis_pct),
        sessions_otherwise_(otherwise.tenant_sessions_max),
        ladder_otherwise_(HeartbeatLadder::of(otherwise)) {
    set_terms(terms);
  }

  // In force at once, also for sessions that are up; whoever is in stays, if that is too many now.
  void set_terms(const TenantTerms& terms) {
    sessions_max_.store(terms.sessions_max.value_or(sessions_otherwise_), std::memory_order_relaxed);
    pending_max_.store(terms.pending_handshakes_max.value_or(kUnbounded), std::memory_order_relaxed);
    const auto rate = static_cast<Duration::rep>(terms.frames_per_second_max.value_or(0));
    frame_every_.store(rate == 0 ? 0 : std::max<Duration::rep>(1, kSecond / rate), std::memory_order_relaxed);
    mem_pct_max_.store(terms.mem_pct_max.value_or(mem_pct_otherwise_), std::memory_order_relaxed);
    disk_pct_max_.store(terms.disk_pct_max.value_or(disk_pct_otherwise_), std::memory_order_relaxed);
    load_hysteresis_pct_.store(terms.load_hysteresis_pct.value_or(hysteresis_otherwise_),
                               std::memory_order_relaxed);
    schema_mode_.store(terms.schema_mode, std::memory_order_relaxed);
    interval_.store(terms.heartbeat_interval.value_or(ladder_otherwise_.interval).count(),
                    std::memory_order_relaxed);
    misses_warn_.store(terms.heartbeat_misses_warn.value_or(ladder_otherwise_.warn),
                       std::memory_order_relaxed);
    misses_degraded_.store(terms.heartbeat_misses_degraded.value_or(ladder_otherwise_.degraded),
                           std::memory_order_relaxed);
    misses_lost_.store(terms.heartbeat_misses_lost.value_or(ladder_otherwise_.lost),
                       std::memory_order_relaxed);
  }

  // None when the bound is reached.
  std::optional<Place> take_session() { return take(sessions_, sessions_max_); }
  std::optional<Place> take_pending() { return take(pending_, pending_max_); }

  // False when the tenant has had its frames, those of the burst too: a bucket that refills with time, as one
  // number, the instant at which it is full again.
  bool take_frame(Instant now) {
    const Duration::rep every = frame_every_.load(std::memory_order_relaxed);
    if (every == 0) return true;
    const Duration::rep present = now.time_since_epoch().count();
    Duration::rep full_at = frames_full_at_.load(std::memory_order_relaxed);
    for (;;) {
      const Duration::rep next = std::max(full_at, present) + every;
      if (next - present > kBurst) return false;
      if (frames_full_at_.compare_exchange_weak(full_at, next, std::memory_order_relaxed)) return true;
    }
  }

  double mem_pct_max() const { return mem_pct_max_.load(std::memory_order_relaxed); }
  double disk_pct_max() const { return disk_pct_max_.load(std::memory_order_relaxed); }
  double load_hysteresis_pct() const { return load_hysteresis_pct_.load(std::memory_order_relaxed); }
  HeartbeatLadder ladder() const {
    return {Duration{interval_.load(std::memory_order_relaxed)}, misses_warn_.load(std::memory_order_relaxed),
            misses_degraded_.load(std::memory_order_relaxed), misses_lost_.load(std::memory_order_relaxed)};
  }
  SchemaMode schema_mode() const { return schema_mode_.load(std::memory_order_relaxed); }
  std::uint64_t sessions() const { return sessions_.load(std::memory_order_relaxed); }
  std::uint64_t pending() const { return pending_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t kUnbounded = std::numeric_limits<std::uint64_t>::max();
  static constexpr Duration::rep kSecond = Duration{seconds{1}}.count();
  static constexpr Duration::rep kBurst = limits::kTenantBurst.count();

  static std::optional<Place> take(std::atomic<std::uint64_t>& taken, const std::atomic<std::uint64_t>& max) {
    std::uint64_t had = taken.load(std::memory_order_relaxed);
    do {
      if (had >= max.load(std::memory_order_relaxed)) return std::nullopt;
    } while (!taken.compare_exchange_weak(had, had + 1, std::memory_order_relaxed));
    return Place{taken};
  }

  double mem_pct_otherwise_;
  double disk_pct_otherwise_;
  double hysteresis_otherwise_;
  std::uint64_t sessions_otherwise_;
  HeartbeatLadder ladder_otherwise_;
  std::atomic<std::uint64_t> sessions_max_{kUnbounded};
  std::atomic<std::uint64_t> pending_max_{kUnbounded};
  std::atomic<Duration::rep> frame_every_{0};  // none: the rate is not bounded
  std::atomic<double> mem_pct_max_{0};
  std::atomic<double> disk_pct_max_{0};
  std::atomic<double> load_hysteresis_pct_{0};
  std::atomic<Duration::rep> interval_{0};
  std::atomic<std::uint32_t> misses_warn_{0};
  std::atomic<std::uint32_t> misses_degraded_{0};
  std::atomic<std::uint32_t> misses_lost_{0};
  std::atomic<SchemaMode> schema_mode_{SchemaMode::Strict};
  std::atomic<std::uint64_t> sessions_{0};
  std::atomic<std::uint64_t> pending_{0};
  // Written for every frame where the rate is bounded: not beside what every frame only reads.
  alignas(64) std::atomic<Duration::rep> frames_full_at_{0};
};

}  // namespace windlass
