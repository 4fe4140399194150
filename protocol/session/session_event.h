// What a session tells its owner. Events are values, polled out in order; nothing calls back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "protocol/base/ids.h"
#include "protocol/base/result.h"
#include "protocol/base/time.h"
#include "protocol/messages/message.h"

namespace windlass {

// The connection carries the session now.
struct Established {
  bool resumed = false;
  std::uint64_t replayed = 0;  // frames of ours that go out a second time
  Duration resume_ttl{};       // for so long it outlives a connection
};

// The next message in order. Until the owner calls own(seq + 1) it is not acknowledged.
struct Delivered {
  Seq seq = 0;
  Message message;
};

// The peer took responsibility for every frame below `next`.
struct Acknowledged {
  Seq next = 0;
};

// Credit is back after a send was refused.
struct Writable {};

// The connection is gone; the session waits for a resume.
struct Detached {};

struct DrainRequested {
  std::string reason;
  Duration deadline{};
};

struct LoadReported {
  bool healthy = true;
  std::uint64_t inflight = 0;
  std::optional<double> cpu_pct;
  std::optional<double> mem_pct;
  std::optional<double> disk_pct;
  std::optional<double> latency_ms;
  std::string metrics;  // the whole metrics object as JSON text
  // By the thresholds of its tenant, with their hysteresis: it should be given no new work.
  bool is_short_of_memory = false;
  bool is_short_of_disk = false;

  bool is_short() const { return is_short_of_memory || is_short_of_disk; }
};

enum class Liveness : std::uint8_t { Healthy, Warn, Degraded, Lost };

struct LivenessChanged {
  Liveness level = Liveness::Healthy;
  Duration silence{};   // since anything was heard
  Duration interval{};  // of its heartbeats
};

// Wall and steady clock parted: this machine slept, or its clock was set.
struct ClockJumped {
  Duration by{};
};

// What a worker says of itself, kept by the scheduler's side.
struct WorkerProfile {
  struct Package {
    std::string name;
    std::string version;
    PackageStatus status = PackageStatus::Installed;
  };
  struct Manifest {
    std::string name;
    std::string version;
    std::string manifest;  // JSON text
  };

  std::string worker_name;
  std::string version;
  std::string hostname;
  std::uint32_t max_parallel = 1;
  std::string per_node_limits;  // JSON text, empty: none
  std::vector<std::string> runtimes;
  std::vector<std::string> features;
  std::vector<std::string> payload_types;
  std::vector<Package> packages;
  std::vector<std::string> channels;
  std::vector<Manifest> manifests;
};

// Scheduler: the worker said what it can do, first or anew.
struct Registered {
  // Shared, since events are copied and the profile is large and never changes.
  std::shared_ptr<const WorkerProfile> profile;
};

// Worker: the scheduler gave a new session token.
struct TokenRotated {
  std::string token;
};

// Scheduler: a second machine claims this session's identity.
struct TwinSuspected {
  std::string reason;
};

// Worker: not connected; the next dial comes after this delay.
struct BackingOff {
  Duration delay{};
  std::string cause;
};

// A frame of the peer was refused, or it refused one of ours; the session goes on.
struct Refused {
  ErrorCode code{};
  std::string info;
  std::string frame_id = {};  // as far as it could be read
  std::string frame_type = {};
  bool by_peer = false;
  bool is_quiet = false;  // for the metrics, not for the log (SchemaMode::Count)
};

// Over. Whatever the peer had not taken responsibility for comes back, in order.
struct Ended {
  std::string code;  // empty after a completed drain; else as the peer or this side said it
  std::string reason;
  Blame initiator = Blame::Local;
  std::optional<Duration> retry_after;
  std::vector<Message> returned;
};

using SessionEvent = std::variant<Established, Delivered, Acknowledged, Writable, Detached, DrainRequested,
                                  LoadReported, LivenessChanged, ClockJumped, Registered, TokenRotated,
                                  TwinSuspected, BackingOff, Refused, Ended>;

// Names a session towards its owner for as long as the endpoint lives; never used again. 0 is no session.
using SessionHandle = StrongId<struct SessionHandleTag, std::uint64_t>;

struct OwnerEvent {
  SessionHandle session{0};
  SessionEvent event;
};

// A wish to close the connection, after everything that poll_transmit gives was sent.
struct CloseRequest {
  std::uint16_t code = 1000;
  std::string reason;
};

inline constexpr std::uint16_t kCloseNormal = 1000;
inline constexpr std::uint16_t kClosePolicy = 1008;
inline constexpr std::uint16_t kCloseInternal = 1011;
inline constexpr std::uint16_t kCloseRestart = 1012;

}  // namespace windlass
