// The nouns of the scheduler as plain values: whom it knows, what it was asked to get done, what came of it.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/base/bytes.h"
#include "protocol/base/error_code.h"
#include "protocol/base/ids.h"
#include "protocol/base/time.h"

namespace windlass {

// A worker, or a runtime: whoever holds a session. Sessions come and go under one key.
struct WorkerKey {
  TenantId tenant;
  InstanceId instance;
  friend auto operator<=>(const WorkerKey&, const WorkerKey&) = default;
};

// One session of one loop's endpoint. Never used again within a process; means nothing in the next one.
struct SessionRef {
  std::uint32_t loop = 0;
  std::uint64_t handle = 0;  // SessionHandle's value
  friend auto operator<=>(const SessionRef&, const SessionRef&) = default;
};

// An operator's request that is owed exactly one Reply. Numbers are the shell's.
using RequestId = StrongId<struct RequestIdTag, std::uint64_t>;

// Command ids are unique in their tenant and mean nothing outside it.
struct CommandKey {
  TenantId tenant;
  std::string id;
  friend auto operator<=>(const CommandKey&, const CommandKey&) = default;
};

// Bytes that came beside a message.
struct StoredAttachment {
  std::string type;
  Bytes bytes;
  friend bool operator==(const StoredAttachment&, const StoredAttachment&) = default;
};

// A business message of a worker as it is kept.
struct StoredMessage {
  std::string id;
  std::string corr;
  std::string type;
  std::string payload;  // JSON text as it came
  std::optional<StoredAttachment> attachment;
  friend bool operator==(const StoredMessage&, const StoredMessage&) = default;
};

// A command that will have no result: why not.
struct Failure {
  ErrorCode code = ErrorCode::Internal;
  std::string reason;
  bool may_have_run = false;  // it was given to a worker, and nobody knows what came of it
  friend bool operator==(const Failure&, const Failure&) = default;
};

enum class CommandState : std::uint8_t {
  Waiting,  // stored; on no session now
  Sent,     // stored; given to the worker's present session
  Done,     // the worker's result is stored
  Failed,   // it will have none: expired, or it cannot be sent
};

std::string_view to_string(CommandState state);
std::optional<CommandState> command_state_from(std::string_view text);

inline constexpr std::string_view kInvokeType = "biz.runtime.invoke";

// Whom a command is for: one worker, any that has the application or runs the language, or a runtime that
// serves the application, of which one is chosen by whoever submits it.
struct CommandTarget {
  enum class Kind : std::uint8_t { Worker, Application, Language, Serving };
  Kind kind = Kind::Worker;
  std::string name = {};  // of the application or language
  bool is_of_application() const { return kind == Kind::Application || kind == Kind::Serving; }
  friend auto operator<=>(const CommandTarget&, const CommandTarget&) = default;
};

struct CommandRecord {
  CommandKey key;
  InstanceId worker;         // of the key's tenant; empty: the target is no worker, and none was chosen yet
  std::string type;          // biz.* or ext.*
  std::string payload;       // JSON text of an object, byte for byte as it was submitted
  std::uint64_t number = 0;  // commands of one worker go in this order
  WallTime created_at{};
  milliseconds timeout{};  // counted from created_at
  // At most one of these, once and for ever.
  std::optional<StoredMessage> result;
  std::optional<Failure> failure;
  WallTime finished_at{};
  CommandTarget target = {};
  bool is_idempotent = false;  // it may be given to another worker though the first may have run it
  std::uint32_t moves = 0;     // how often it was given up by a worker that was chosen for it

  WorkerKey worker_key() const { return {key.tenant, worker}; }
  bool is_finished() const { return result.has_value() || failure.has_value(); }
  friend bool operator==(const CommandRecord&, const CommandRecord&) = default;
};

// A business message that answers no command.
struct InboxRecord {
  WorkerKey worker;
  std::uint64_t number = 0;  // in order of arrival
  WallTime received_at{};
  StoredMessage message;
  std::string session = {};  // of a worker of revision 1, whose ids mean something within it only
  std::string digest = {};   // of the content, once that made room for others: only the key is kept
  friend bool operator==(const InboxRecord&, const InboxRecord&) = default;
};

// No session token of this worker issued up to and at `until` verifies.
struct Revocation {
  WorkerKey worker;
  WallTime until{};
  friend bool operator==(const Revocation&, const Revocation&) = default;
};

// This instance is not let in, whatever credential it shows, until an operator allows it again.
struct Denial {
  WorkerKey worker;
  WallTime since{};
  friend bool operator==(const Denial&, const Denial&) = default;
};

// The operator wants this worker to finish and go, across sessions and restarts, until it said that it is
// done or the time is over.
struct DrainIntent {
  WorkerKey worker;
  std::string reason;
  WallTime until{};
  friend bool operator==(const DrainIntent&, const DrainIntent&) = default;
};

}  // namespace windlass

template <>
struct std::hash<windlass::WorkerKey> {
  std::size_t operator()(const windlass::WorkerKey& key) const {
    return std::hash<std::string>{}(key.tenant.value()) * 31 + std::hash<std::string>{}(key.instance.value());
  }
};

template <>
struct std::hash<windlass::CommandKey> {
  std::size_t operator()(const windlass::CommandKey& key) const {
    return std::hash<std::string>{}(key.tenant.value()) * 31 + std::hash<std::string>{}(key.id);
  }
};

template <>
struct std::hash<windlass::SessionRef> {
  std::size_t operator()(const windlass::SessionRef& session) const {
    return std::hash<std::uint64_t>{}(session.handle * 0x9e3779b97f4a7c15ULL + session.loop);
  }
};
