// The bounds of the scheduler's memory and store, with safe defaults. Bounds per tenant keep one tenant from
// using up another's room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "protocol/base/ids.h"
#include "protocol/base/limits.h"
#include "protocol/base/time.h"

namespace windlass {

namespace limits {

// A command is not sent again later than this after its submission, plus the time one session may hold it
// back; the worker's journal remembers longer, so that a command sent again always finds its answer and never
// runs twice.
inline constexpr Duration kCommandTimeoutMax = seconds{3000};
inline constexpr Duration kCommandTimeout = seconds{600};
static_assert(kCommandTimeoutMax + kResumeTtl + kRetransmitCap * kAttemptsMax < kJournalTtl);
static_assert(kCommandTimeout <= kCommandTimeoutMax);

// An order gets extra time for its package (at most 1 GiB), enough for the slowest link we support. The agent
// gives up on its own when the transfer stalls.
inline constexpr std::uint64_t kPackageBytesPerSecondMin = 448 * 1024;
constexpr Duration fetch_time(std::uint64_t package_bytes) {
  return seconds{static_cast<std::int64_t>(package_bytes / kPackageBytesPerSecondMin)};
}
static_assert(kCommandTimeout + fetch_time(std::uint64_t{1} << 30U) < kCommandTimeoutMax);

// What fits one frame beside its envelope.
inline constexpr std::size_t kCommandPayloadBytesMax = kFrameBytesMax - kEnvelopeBytesMax;

}  // namespace limits

struct CoreOptions {
  // Commands
  std::size_t in_flight_per_worker_max = 128;  // on one session without a result
  std::size_t pending_per_tenant_max = 10'000;
  std::size_t pending_bytes_per_tenant_max = 64 * 1024 * 1024;
  std::size_t finished_per_tenant_max = 10'000;
  std::size_t finished_bytes_per_tenant_max = 64 * 1024 * 1024;
  Duration finished_age_max = seconds{24 * 3600};
  Duration command_timeout = limits::kCommandTimeout;  // where a submission names none
  std::size_t placement_scan_max = 256;  // commands of one application or language looked at in one go

  // Messages that answer no command: the oldest of a tenant go first.
  std::size_t inbox_per_tenant_max = 1'000;
  std::size_t inbox_bytes_per_tenant_max = 16 * 1024 * 1024;
  // What a message was called is known for longer than the message: a worker may send it again.
  std::size_t inbox_keys_per_tenant_max = limits::kJournalEntriesMax;
  Duration inbox_key_age_max = limits::kJournalTtl;

  // Workers whose session is over are remembered for a while, for whoever asks.
  std::size_t gone_workers_max = 10'000;
  Duration gone_age_max = seconds{3600};

  // A worker or runtime that is gone for longer is lost, however its connection ended. Longer than a
  // heartbeat interval, because silence counts. Its commands and its place are lost with it.
  Duration lost_after = seconds{45};
  std::map<TenantId, Duration> tenant_lost_after = {};  // of those with heartbeats or terms of their own
  Duration lost_after_of(const TenantId& tenant) const {
    const auto own = tenant_lost_after.find(tenant);
    return own == tenant_lost_after.end() ? lost_after : own->second;
  }

  // Applications
  std::size_t app_versions_per_tenant_max = 1'000;
  std::size_t app_settings_bytes_max = 64 * 1024;
  Duration assignment_forget_after = seconds{3600};  // for that long it shows that its worker was lost
  Duration assignment_retry = milliseconds{500};     // places that are free are looked at at most this often
  std::size_t assignments_at_once = 32;              // and so many are filled each time
  // A place whose new worker could not become the application's is given to another after this delay, doubled
  // up to the cap for as long as nobody can.
  Duration refill_retry_first = seconds{2};
  Duration refill_retry_cap = seconds{60};
  Duration assignment_settle_time = seconds{5};  // a worker that forgot its application is told again after
  std::size_t signals_per_runtime_max = 16;
  // A worker that its runtime drained for want of memory is resumed once that runtime's memory has been
  // normal for so long, and the next one so much later.
  Duration resume_after = seconds{30};

  Duration token_lifetime =
      limits::kTokenLifetime;  // a revocation is kept as long as a token it strikes may live
  std::size_t revocations_max = limits::kRevokedMax;
  std::size_t denials_max = limits::kRevokedMax;

  // Where runtimes may be, beside what their certificates name: "host", "host:port", "*.domain" or "*".
  std::vector<std::string> runtime_addresses = {};

  // While the store refuses, it is tried again after this delay, doubled up to the cap.
  Duration store_retry_first = milliseconds{500};
  Duration store_retry_cap = seconds{10};
};

}  // namespace windlass
