// One channel of a simulated world with the language worker behind it: what is under way in each direction,
// what the worker runs, and what has been done to it, so that the oracles know what it may suffer for.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "runtime/core/runtime_core.h"

namespace windlass::sim {

struct ModelChannel {
  runtime::ChannelId id;
  bool is_agent = true;
  std::string identity;
  std::string configured;  // the application a worker that dials in by itself is for
  std::uint64_t spawns = 0;
  std::string worker;  // its present id

  // The link. Bounded downwards, as a shell's queue is; what waits is never reordered.
  bool is_open = true;
  bool is_detached = false;
  Instant detached_at{};  // while it is
  bool is_stalled = false;
  bool is_blocked = false;
  bool is_down_pumping = false;
  bool is_up_pumping = false;
  std::deque<runtime::HostMessage> down;
  std::deque<runtime::WorkerMessage> up;

  // The worker.
  bool is_hung = false;
  bool has_started = false;
  bool is_awaiting_init = false;  // what was sent to the process before it is dropped by its agent
  bool is_ended = false;          // the core was told so, and of no other process since
  bool is_initialized = false;
  bool has_status = true;
  bool has_collections = false;
  bool has_cancel = false;
  std::set<std::string> running;
  std::uint64_t logs_said = 0;

  // What the core was told and gave.
  runtime::ApplicationVersion told;  // by the last WorkerSpecialized it got
  // Those before, to which the core may still count it: until it has said that the last change is made. A
  // change that it refuses leaves the worker where it was.
  std::set<runtime::JobHostKey> leaving;
  std::uint64_t changes_asked = 0;
  std::set<std::string> given;  // invocations whose answers it has not got
  std::uint64_t logs_heard = 0;
  std::deque<std::string> answers;  // good ones it got, in order, whose outcomes are to come
  bool may_be_lost = false;         // something was done that the core may end it for
  Instant silent_since{};           // when it hung
};

struct ModelInvocation {
  runtime::JobHostKey job_host;
  std::string function;
  bool is_idempotent = false;
  bool is_retried = false;  // by the core, after its failures
  bool may_be_sent = true;  // it was not yet, or its failure was answered and is retried
  bool must_complete = false;
  bool has_short_time = false;  // its worker may be given up for it
  std::optional<Instant> patience_until = std::nullopt;
  bool is_done = false;
  bool was_answered = false;
  std::uint32_t sends = 0;
};

}  // namespace windlass::sim
