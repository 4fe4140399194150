// Everything the scheduler's core can be told: what sessions say, and what operators ask for. Values, posted
// by the loops and by the admin listener to the one thread that steps the core.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "protocol/base/result.h"
#include "protocol/messages/control.h"
#include "protocol/session/session_event.h"
#include "scheduler/core/app_values.h"
#include "scheduler/core/values.h"

namespace windlass {

// First of every session, before any of its events: Established{resumed = false}, with what the endpoint
// knows of it.
struct SessionOpened {
  SessionRef session;
  WorkerKey worker;
  std::string session_id;
  Role role = Role::Worker;
  Revision revision = Revision::Two;
  std::string address;
  std::vector<std::string> certificate_names = {};  // "DNS:name", "IP:..."; of a verified client certificate
};

// Any later event. Those that say nothing to the core (Acknowledged, Writable, ...) may be left out by the
// shell.
struct SessionSaid {
  SessionRef session;
  SessionEvent event;
};

// The session refused a message of Effects::sends for good. Not for E.SESSION.WOULD_BLOCK: then the shell
// keeps that session's messages, in order, until Writable or Ended.
struct SendRefused {
  SessionRef session;
  CommandKey command;
  Error error;
};

struct SubmitCommand {
  RequestId request;
  WorkerKey worker;
  std::string id;  // empty: one is made. Named, a repetition is answered with the first's record.
  std::string type;
  std::string payload;
  std::optional<Duration> timeout;
  CommandTarget target = {};  // an application or language: of `worker` only the tenant counts
  bool is_idempotent = false;
};

struct DrainWorker {
  RequestId request;
  WorkerKey worker;
  std::string reason;
  Duration deadline{};
};

struct ResetWorker {
  RequestId request;
  WorkerKey worker;
  std::string reason;
};

struct RotateToken {
  RequestId request;
  WorkerKey worker;
};

// Also for a worker without a session: its tokens may be about. It stays out until AllowWorker.
struct RevokeWorker {
  RequestId request;
  WorkerKey worker;
};

struct AllowWorker {
  RequestId request;
  WorkerKey worker;
};

// A language worker that was drained is started again.
struct ResumeWorker {
  RequestId request;
  WorkerKey worker;
};

// Its package is here, whole. `number` and `deployed_at` are filled in. Settings that are neither given nor
// removed stay.
struct DeployApp {
  RequestId request;
  AppRecord app;
  std::set<std::string> unset = {};
};

struct UndeployApp {
  RequestId request;
  TenantId tenant;
  std::string application_id;
  std::string code_version;  // empty: every one
};

// Kept with the application. The runtimes that serve it are told beside this; others when they begin to.
struct SplitApp {
  RequestId request;
  TenantId tenant;
  std::string application_id;
  Weights weights;
};

struct AssignWorkers {
  RequestId request;
  TenantId tenant;
  std::string application_id;
  std::string code_version;  // empty: the newest
  std::uint32_t workers = 1;
  std::string runtime;  // empty: whichever suits best
  bool is_partial = false;
  std::string id;  // empty: one is made. Named, a repetition is answered with what the first did.
};

struct UnassignWorkers {
  RequestId request;
  TenantId tenant;
  std::string application_id;
  std::string code_version;  // empty: of any
  std::optional<std::uint32_t> workers;
  std::string id;
};

using Input = std::variant<SessionOpened, SessionSaid, SendRefused, SubmitCommand, DrainWorker, ResetWorker,
                           RotateToken, RevokeWorker, AllowWorker, ResumeWorker, DeployApp, UndeployApp,
                           SplitApp, AssignWorkers, UnassignWorkers>;

}  // namespace windlass
