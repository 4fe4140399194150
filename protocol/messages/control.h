// The payloads of control frames as plain values. Field names are the schema's. Text fields are views: of a
// decoded frame into the decoder's memory, of a frame to be sent into its session's. The session counts
// frames, so positions are "how many from the start": received_next is last_seen_seq + 1, and 0 says nothing
// was seen yet.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "protocol/base/ids.h"
#include "protocol/base/time.h"
#include "protocol/messages/ack_bitmap.h"

namespace windlass {

enum class Revision : std::uint8_t { One = 1, Two = 2 };
enum class Role : std::uint8_t { Scheduler, Worker, Runtime };
enum class AuthMode : std::uint8_t { Token, Mtls };
enum class DrainPhase : std::uint8_t { Start, Complete };
enum class PackageStatus : std::uint8_t { Installed, Missing, Failed };

struct Handshake {
  std::uint64_t protocol = 2;
  AuthMode mode = AuthMode::Token;
  std::string_view token;        // empty: absent
  std::string_view fingerprint;  // empty: absent
  std::string_view worker_name;
  std::string_view worker_instance_id;  // empty: absent (revision 1 only); sender.id then speaks alone
  std::string_view version;
  std::string_view hostname;
};

struct Register {
  struct Package {
    std::string_view name;
    std::string_view version;
    PackageStatus status = PackageStatus::Installed;
  };
  struct Manifest {
    std::string_view name;
    std::string_view version;
    std::string_view manifest;  // its JSON text
  };

  std::uint32_t max_parallel = 1;
  std::string_view per_node_limits;  // its JSON text, empty: absent
  std::vector<std::string_view> runtimes;
  std::vector<std::string_view> features;
  std::vector<std::string_view> payload_types;
  std::vector<Package> packages;
  std::vector<std::string_view> channels;
  std::vector<Manifest> manifests;
};

// What a side offers to hold: frames and bytes beyond its ack_seq.
struct Credit {
  std::uint32_t frames = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Credit&, const Credit&) = default;
};

struct SessionAccept {
  std::string_view session_id;
  std::string_view session_token;
  std::string_view worker_instance_id;
  std::optional<WallTime> expires_at;
  bool resumed = false;
  // Revision 2 only, all of them always present there.
  Seq received_next = 0;          // last_seen_seq + 1
  Seq earliest_retained = 0;      // earliest_retained_seq
  Credit credit;                  // recv_window, recv_window_bytes
  Duration heartbeat_interval{};  // heartbeat_interval_ms
  Duration resume_ttl{};          // resume_ttl_ms
  std::uint64_t frame_bytes_max = 0;
};

struct Resume {
  std::string_view session_id;
  std::string_view session_token;
  Seq received_next = 0;      // last_seen_seq + 1
  Seq earliest_retained = 0;  // earliest_retained_seq; revision 2 only
  Credit credit;              // recv_window, recv_window_bytes; revision 2 only
};

struct Reset {
  std::string_view code;
  std::string_view reason;
  std::optional<Duration> retry_after;  // retry_after_ms
};

struct Drain {
  DrainPhase phase = DrainPhase::Start;  // revision 2 only; revision 1 knows Start alone
  std::string_view reason;
  std::optional<Duration> deadline;  // deadline_ms
};

// The receiving half's position, as every ack of an accepted session carries it.
struct AckState {
  Seq owned_next = 0;     // ack_seq + 1
  AckBitmap held;         // bit i: owned_next + i is held, not owned yet
  Credit credit;          // recv_window, recv_window_bytes (revision 2)
  std::uint64_t dup = 0;  // duplicates seen since the last ack; revision 2 only
};

struct Ack {
  bool ok = true;
  std::string_view for_id;  // payload "for"; empty: absent
  std::string_view info;    // empty: absent
  std::optional<AckState> state;
};

struct Heartbeat {
  bool healthy = true;
  std::uint64_t inflight = 0;
  std::optional<double> cpu_pct;
  std::optional<double> mem_pct;
  std::optional<double> disk_pct;
  std::optional<double> latency_ms;
  std::string_view metrics;            // the whole metrics object as JSON text, with what is not named above
  std::optional<bool> packages_drift;  // packages.drift
};

}  // namespace windlass
