// What the scheduler's core wants done, in the order in which it must be done: commit `writes` as one; then,
// and only then, the rest. What is not committed leaves no trace outside.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "protocol/base/result.h"
#include "protocol/messages/message.h"
#include "scheduler/core/app_values.h"
#include "scheduler/core/fleet_status.h"
#include "scheduler/core/rows.h"
#include "scheduler/core/values.h"

namespace windlass {

// Takes responsibility for every delivered frame of the session below `next`.
struct Own {
  SessionRef session;
  Seq next = 0;
};

// One command for its worker's session. A session's messages go in the order given. Where credit is spent the
// shell keeps them until Writable; they end with their session. Any other refusal is said with SendRefused.
struct Send {
  SessionRef session;
  CommandKey command;
  Message message;
};

struct DrainSession {
  SessionRef session;
  std::string reason;
  Duration deadline{};
};

struct ResetSession {
  SessionRef session;
  ErrorCode code = ErrorCode::Internal;
  std::string reason;
};

struct RotateSession {
  SessionRef session;
};

// Nobody of this worker's name is let in any more. For the token authority of every loop: tokens of this
// worker issued up to `until` are void. Its session, if any, ends by a revoke of the endpoint that has it.
struct RevokeTokens {
  Revocation revocation;
  std::optional<SessionRef> session;
};

// The worker may connect again. Concerns no session: there is none.
struct AllowInstance {
  WorkerKey worker;
};

using SessionCommand = std::variant<DrainSession, ResetSession, RotateSession, RevokeTokens, AllowInstance>;

// An agent asks for a part of a package. Its bytes are the shell's to read and to send as biz.package.part.
struct PackageAsked {
  SessionRef session;
  std::string corr;  // the id of what asked
  PackageRequest request;
};

// A message that is not kept: if its session ends first, whoever wanted it asks again.
struct Tell {
  SessionRef session;
  Message message;
};

// Of AssignWorkers and UnassignWorkers.
struct AssignmentsMade {
  std::vector<AssignmentRecord> assignments;
  std::string shortfall;     // why they are fewer than asked for; empty: they are not
  bool is_repeated = false;  // the id was known; nothing new was stored
};

struct CommandAccepted {
  CommandKey key;
  bool is_repeated = false;  // the id was known with the same body; nothing new was stored
};

// Exactly one per request.
struct Reply {
  RequestId request;
  std::variant<CommandAccepted, Done, Error, AssignmentsMade> outcome;
};

enum class DispatchCause : std::uint8_t { First, SessionEnded, Restarted, WorkerLost };

// A command was given to a session.
struct Dispatched {
  CommandKey command;
  WorkerKey worker;
  std::string type;
  DispatchCause cause = DispatchCause::First;
};

// A command has its one outcome, and it is durable: whoever waits for it may be told.
struct Finished {
  CommandKey command;
  WorkerKey worker;
  std::string type;
  std::optional<ErrorCode> failure;
  milliseconds latency{};  // since its submission
};

// A worker begins to be short of memory or disk and gets no new work, or it has enough again.
struct ShortageChanged {
  WorkerKey worker;
  std::string_view of;  // memory or disk; empty: it is over
};

enum class Ignored : std::uint8_t {
  DuplicateResult,
  LateResult,
  DuplicateMessage,
  ConflictingMessage,  // another content under an id that is known
  ForgottenResult,     // of a command that is not known, any more or at all
};

// A frame was taken and changed nothing.
struct FrameIgnored {
  WorkerKey worker;
  std::string id;
  std::string corr;
  Ignored why = Ignored::DuplicateResult;
};

struct MessageStored {
  WorkerKey worker;
  std::string id;
  std::string type;
};

// The inbox was full: the oldest message of the tenant made room.
struct MessageDropped {
  WorkerKey worker;
  std::string id;
};

// What a worker is to run, or what became of it. Durable.
struct AssignmentChanged {
  AssignmentRecord assignment;
  bool is_over = false;  // the worker is a placeholder again
};

// A worker failed with new settings: for the time being they are brought to nobody else. Durable.
struct RolloutStopped {
  AppKey app;
  std::uint64_t settings_version = 1;
  std::string reason;
};

// A runtime said that it needs something.
struct RuntimeSignalled {
  WorkerKey runtime;
  RuntimeSignal signal;
};

// A runtime names an address that neither the settings nor its certificate vouch for. Said once for each.
struct RuntimeAddressRefused {
  WorkerKey runtime;
  std::string url;
};

// A worker that its runtime drained for want of memory is started again.
struct WorkerResumed {
  WorkerKey worker;
  WorkerKey runtime;
};

// The last application that used it may be gone; ask is_package_used before it is thrown away.
struct PackageUnused {
  std::string digest;
};

// A worker begins to fetch a package, or may not.
struct PackageRequested {
  WorkerKey worker;
  bool is_allowed = false;
};

// For logs, metrics and whoever waits. Nothing needs to be done about them.
using CoreEvent = std::variant<Dispatched, Finished, FrameIgnored, MessageStored, MessageDropped,
                               AssignmentChanged, RolloutStopped, RuntimeSignalled, RuntimeAddressRefused,
                               PackageUnused, ShortageChanged, PackageRequested, WorkerResumed>;

struct Effects {
  WriteBatch writes;  // empty: nothing to commit; go on with the rest and say effects_committed(expected)
  Version expected{0};
  // After the commit, in this order.
  std::vector<Own> owns;
  std::vector<Send> sends;
  std::vector<SessionCommand> session_commands;
  std::vector<PackageAsked> packages_asked;
  std::vector<Tell> tells;
  std::vector<Reply> replies;
  std::vector<CoreEvent> events;
};

}  // namespace windlass
