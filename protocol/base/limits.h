// Every bound of the protocol, with the relations between them. These are the defaults and the hard ceilings;
// SessionConfig carries the configured values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/base/time.h"

namespace windlass::limits {

// Wire
inline constexpr std::size_t kFrameBytesMax = 1024 * 1024;          // envelope plus attachment
inline constexpr std::size_t kFrameBytesLeast = 16 * 1024;          // that a frame_bytes_max may say
inline constexpr std::size_t kFrameBytesBeforeAuthMax = 16 * 1024;  // refused before JSON parsing
inline constexpr std::size_t kFragmentsMax = 4096;                  // WebSocket frames of one message
inline constexpr std::size_t kUpgradeHeadBytesMax = 8 * 1024;       // HTTP request or response head
inline constexpr std::size_t kEnvelopeBytesMax =
    8 * 1024;                                        // all but payload and attachment, escaped at worst
inline constexpr std::size_t kNestingDepthMax = 32;  // JSON objects and arrays around a value
inline constexpr std::uint64_t kIntegerMax = (std::uint64_t{1} << 53U) - 1;
inline constexpr std::size_t kIdBytesMax = 128;  // id, corr, instance id, session id
inline constexpr std::size_t kTypeBytesMax = 128;
inline constexpr std::size_t kTenantBytesMax = 64;
inline constexpr std::size_t kNameBytesMax = 256;         // display names, host names, versions
inline constexpr std::size_t kReasonBytesMax = 1024;      // reason, info
inline constexpr std::size_t kCloseReasonBytesMax = 123;  // of a WebSocket close (RFC 6455, 5.5)
inline constexpr std::size_t kTokenBytesMax = 4096;
inline constexpr std::size_t kFlagsMax = 16;
inline constexpr std::size_t kCapabilitiesMax = 256;                // entries of any list in control.register
inline constexpr std::size_t kMetricsMax = 256;                     // members of a heartbeat's metrics
inline constexpr Duration kIntervalMax = seconds{365 * 24 * 3600};  // of any *_ms on the wire

// Window
inline constexpr std::uint32_t kWindowFramesMax = 4096;
inline constexpr std::uint32_t kWindowFramesRevision1Max = 64;
inline constexpr std::uint32_t kWindowFrames = 256;
inline constexpr std::uint64_t kWindowBytes = 8 * 1024 * 1024;  // recv_window_bytes
inline constexpr std::uint64_t kSendBytesMax =
    64 * 1024 * 1024;  // kept for one session, whatever its peer offers
inline constexpr Duration kAckDelay = milliseconds{5};

// Retransmission
inline constexpr Duration kRetransmitFloor = milliseconds{200};
inline constexpr Duration kRetransmitCap = seconds{5};
inline constexpr std::uint32_t kAttemptsMax = 6;
// After the last attempt, while frames of the peer's own keep coming: the acknowledgement is behind them.
inline constexpr Duration kAckBehindDataMax = seconds{300};
inline constexpr std::uint32_t kRetransmitWaitsMax = 4;  // for a busy transport that begin the interval anew

// Lifecycle
inline constexpr Duration kHandshakeStage = seconds{10};
inline constexpr Duration kResumeTtl = seconds{300};
inline constexpr Duration kBackoffFirst = seconds{2};  // wide enough to spread the first dials of a fleet
inline constexpr Duration kBackoffCap = seconds{30};
inline constexpr Duration kRetryAfterMax = seconds{600};  // a larger retry_after_ms is clamped
inline constexpr Duration kHeartbeatInterval = seconds{30};
inline constexpr std::uint32_t kHeartbeatMissesWarn = 1;
inline constexpr std::uint32_t kHeartbeatMissesDegraded = 2;
inline constexpr std::uint32_t kHeartbeatMissesLost = 3;
inline constexpr Duration kClockJump = seconds{10};
inline constexpr Duration kDrainDeadline = seconds{300};
inline constexpr Duration kTokenLifetime = seconds{3600};
inline constexpr Duration kRestartPace = milliseconds{20};  // between two sessions of a scheduler that stops
inline constexpr Duration kCloseLinger = seconds{5};        // for the peer to answer a close

// Abuse
inline constexpr std::uint32_t kErrorBudget = 16;                // violations a session may spend at once
inline constexpr Duration kErrorRefill = seconds{60};            // one violation is forgiven each
inline constexpr std::uint64_t kFramesPerSecondMax = 1'000'000;  // of one session
// Of a tenant's rate, saved up: what piles up while this process or the network stands still, and is sent
// again at once by every resume, must not cost sessions.
inline constexpr Duration kTenantBurst = seconds{10};
inline constexpr std::size_t kControlQueueMax = 64;  // control frames waiting for a transport that is busy
// Likewise where it is not: answers to what one turn brings from a peer that reads.
inline constexpr std::size_t kControlTurnMax = 1024;
inline constexpr std::size_t kAcceptsUnproved = 8;  // accepts of one connection whose ack is awaited
inline constexpr std::size_t kPendingHandshakesMax = 1024;
inline constexpr std::size_t kSessionsMax = 65536;
inline constexpr std::size_t kSigningKeysMax = 8;
inline constexpr std::size_t kRevokedMax = 65536;  // revoked instance ids remembered

// Transport
inline constexpr std::size_t kHelloBytesMax = 16 * 1024;             // of a TLS client's first message
inline constexpr std::size_t kCertificatesBytesMax = 32 * 1024;      // of a TLS peer's chain
inline constexpr std::size_t kReadBytesMax = 64 * 1024;              // of one connection in one turn
inline constexpr std::size_t kCorkBytesMax = 64 * 1024;              // frames held back for the end of a turn
inline constexpr std::size_t kSealBytesMax = 64 * 1024;              // encrypted at once, for one write
inline constexpr std::size_t kSendBufferBytesMax = 4 * 1024 * 1024;  // unsent; a slower reader is closed
inline constexpr Duration kSendStall = seconds{30};                  // unsent bytes must shrink within
inline constexpr Duration kDeadLink = seconds{4};           // without an ack, or with a closed window
inline constexpr std::size_t kBuffersKept = 64;             // spare send buffers of one loop
inline constexpr std::size_t kBufferKeptBytes = 64 * 1024;  // a larger one is given back
inline constexpr std::size_t kConnectionsMax = 65536;       // of one listener
inline constexpr std::size_t kOpeningMax = 1024;  // connections of one listener before their upgrade
inline constexpr std::size_t kHandshakesAtOnce =
    256;  // of one listener, begun within kHandshakePace; others wait
inline constexpr Duration kHandshakePace = milliseconds{500};
inline constexpr Duration kSilencePace = milliseconds{100};  // the same for one that has said nothing yet
inline constexpr Duration kHandshakePatience =
    seconds{2};  // for one under way, when it fills the house with others
inline constexpr Duration kAcceptBreath = milliseconds{5};   // before looking again whether one is over
inline constexpr std::size_t kAcceptsPerTurnMax = 64;        // the rest waits for the next turn
inline constexpr Duration kAcceptPause = milliseconds{100};  // when the process is out of descriptors
inline constexpr std::size_t kTrimConnections = 256;  // that end before their memory goes back to the system
inline constexpr int kListenBacklog = 4096;
inline constexpr std::size_t kDialAddressesMax = 8;  // of one name, tried in turn

// Admin listener
inline constexpr std::size_t kAdminHeadBytesMax = 16 * 1024;
inline constexpr std::size_t kAdminBodyBytesMax = kFrameBytesMax;  // a largest command and its other members
inline constexpr std::size_t kAdminConnectionsMax = 64;
inline constexpr std::size_t kAdminWaitsMax = 256;  // requests that wait for a command's outcome
inline constexpr std::size_t kAdminPage = 100;      // entries of a list, unless the request says how many
inline constexpr std::size_t kAdminPageMax = 1000;
inline constexpr std::size_t kAdminListBytesMax = 8 * 1024 * 1024;  // a list with payloads ends early at this
inline constexpr Duration kAdminHeadTime = seconds{10};             // for a request's head, TLS included
inline constexpr Duration kAdminBodyTime = seconds{30};
inline constexpr Duration kAdminIdleTime = seconds{60};  // between two requests
inline constexpr Duration kAdminWriteTime = seconds{30};
inline constexpr Duration kAdminWaitMax = seconds{60};  // of wait_ms
inline constexpr Duration kAdminAnswerTime = seconds{120};

// HTTP, whoever listens
inline constexpr std::size_t kHttpHeadersMax = 256;           // fields of one request
inline constexpr std::size_t kHttpTargetBytesMax = 8 * 1024;  // path and query
inline constexpr std::size_t kHttpQueryPairsMax = 1024;
// Of one listener: what the bodies of requests under way hold together. One largest body always fits.
inline constexpr std::size_t kHttpBodiesBytesMax = std::size_t{1024} * 1024 * 1024;
// What a body or an answer must move at after its first time is over, so that large ones get the time they
// need and slow ones do not hold their connection for ever.
inline constexpr std::size_t kHttpBytesPerSecondLeast = 16 * 1024;

// Files that are read again when they change
inline constexpr Duration kFileSettle = milliseconds{200};  // after the last change, for the writer to finish
inline constexpr Duration kFileSettleMax = seconds{2};      // after the first change, whatever still changes
inline constexpr Duration kFileLook = seconds{30};          // where the file system does not tell of changes
inline constexpr std::size_t kFileEventReadsMax = 16;       // in one turn
inline constexpr std::size_t kSymbolicLinksMax = 40;        // of one path, as the kernel's own bound

// Log and metrics of a service
inline constexpr std::uint64_t kLogLinesBurst = 64;            // of one kind that peers cause, on one loop
inline constexpr Duration kLogLineRefill = milliseconds{200};  // one more line of that kind
inline constexpr std::uint64_t kLogSessionLinesBurst = 1024;   // of one kind, of workers that were let in
inline constexpr Duration kLogSessionLineRefill = milliseconds{10};
inline constexpr std::size_t kRefusalsKept = 256;      // of peers, between two looks of the owner
inline constexpr std::size_t kMetricSeriesMax = 4096;  // of one name, where peers choose a label

// Idempotency journal
inline constexpr std::size_t kJournalEntriesMax = 65536;
inline constexpr std::size_t kJournalBytesMax = 64 * 1024 * 1024;
inline constexpr std::size_t kJournalResultBytesReserved = 4 * 1024;  // for each result still to come
inline constexpr Duration kJournalTtl = seconds{3600};

static_assert(kFrameBytesBeforeAuthMax < kFrameBytesMax);
static_assert(kFrameBytesLeast > kEnvelopeBytesMax, "something must fit beside the largest envelope");
static_assert(kWindowBytes >= kFrameBytesMax, "one largest frame must always fit the window");
static_assert(kWindowFrames <= kWindowFramesMax);
static_assert(kSendBytesMax >= kWindowBytes, "two sides with default windows can fill them");
static_assert(kRetransmitFloor < kRetransmitCap);
static_assert(kSendBufferBytesMax >= 2 * kFrameBytesMax, "a blocked sender may add one more frame");
static_assert(kAdminAnswerTime > kAdminWaitMax, "who waits as long as allowed is still answered");
static_assert(kFileSettle < kFileSettleMax && kFileSettleMax < kFileLook);
static_assert(kJournalTtl > kResumeTtl + kRetransmitCap * kAttemptsMax, "a retry must still find its answer");
static_assert(kTokenLifetime > kResumeTtl, "a token must outlive the session state it resumes");

}  // namespace windlass::limits
