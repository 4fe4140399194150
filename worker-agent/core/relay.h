// The life of one language worker beside its runtime: when it is started and ended, what of its FunctionRpc
// stream passes, what is kept and answered here, and how it becomes an application's worker and another
// runtime's. Moves no bytes itself: it is asked about every message, and says by steps what else is to be
// done.
//
//   from_worker(), from_runtime(), handle_*(), start() -> poll_step() until empty, poll_status(),
//   poll_timeout()
//
// A worker is a process with an id of its own, `<agent>.<spawn count>`. A runtime knows it by its
// StartStream: the next worker's on the same session says that the one before is gone.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "protocol/base/deadlines.h"
#include "protocol/base/time.h"
#include "protocol/function_rpc/peek.h"
#include "worker-agent/core/known_invocations.h"
#include "worker-agent/core/worker_command.h"

namespace windlass::agent {

struct RelayOptions {
  std::string instance_id;
  std::string language;
  Duration start_timeout = seconds{60};        // from the spawn to the worker's StartStream
  Duration init_timeout = seconds{60};         // for the answer to WorkerInitRequest
  Duration reload_timeout = seconds{30};       // for the answer to an environment reload
  Duration fetch_stall_max = seconds{180};     // of a specialize whose package is fetched: without any of it
  Duration unpack_timeout = seconds{180};      // for unpacking or comparing it, once all of it is here
  Duration specialize_timeout = seconds{180};  // of the rest of the command, once its package can be used
  Duration reassign_timeout = seconds{60};     // of the whole command
  Duration part_timeout =
      seconds{45};  // for the runtime's word that a worker which ends has no more to answer
  Duration part_silence = seconds{5};          // the same while it has nothing to answer
  Duration backoff_first = milliseconds{250};  // before a worker that died is started again
  Duration backoff_cap = seconds{30};
  Duration steady_after = seconds{30};    // a worker that lived so long is started again without much waiting
  std::uint32_t command_crashes_max = 2;  // of one command
  std::size_t functions_max = 4096;       // named in a result
};

// What the shell is to do, in order.
struct Spawn {
  std::string worker_id;
  std::string folder = {};  // of its application; empty: it has none
};
struct StopWorker {
  bool is_polite = true;  // it can still be told by a WorkerTerminate
};
struct ToRuntime {
  std::string message;
};
struct SendReload {
  Application application;
  std::string folder;
};
struct SendSpecialized {
  Application application;
  std::string folder;
  std::string reload;  // the worker's answer, the content's bytes
};
struct FetchPackage {
  std::string digest;
  std::uint64_t bytes = 0;
};
struct DialRuntime {
  RuntimeTarget target;
};
struct Remember {
  Assignment assignment;
};
struct CommandDone {
  RunId id;
  std::string result;
  Duration took{};
};
// A worker ended that was not told to.
struct Reported {
  std::string worker_id;
  std::string how;
  bool is_error = true;
  Duration restart_in{};
};
using RelayStep = std::variant<Spawn, StopWorker, ToRuntime, SendReload, SendSpecialized, FetchPackage,
                               DialRuntime, Remember, CommandDone, Reported>;

enum class Route : std::uint8_t {
  Forward,
  Drop,
  Take,    // the caller decodes it and calls the handle_* for its content
  Refuse,  // a language worker has no business to say it; functions can write on its stream
};

struct WorkerEnd {
  enum class Kind : std::uint8_t { Exited, Signalled, NotStarted } kind = Kind::Exited;
  int code = 0;
  std::string reason = {};               // of NotStarted
  std::vector<std::string> errors = {};  // its last lines of standard error
};

enum class WorkerState : std::uint8_t { Starting, Placeholder, Specializing, Ready, Failed, Drained };
std::string_view to_string(WorkerState state);

struct WorkerStatus {
  std::string worker_id;
  WorkerState state = WorkerState::Starting;
  RuntimeTarget runtime;
  std::optional<Application> application;
  std::string last_error;
  bool is_drained_for_memory = false;
  friend bool operator==(const WorkerStatus&, const WorkerStatus&) = default;
};

class Relay final {
 public:
  Relay(RelayOptions options, RuntimeTarget runtime, Instant now);
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // Once; what an earlier process of this agent was.
  void start(const Assignment& earlier, Instant now);
  void handle(const WorkerCommand& command, Instant now);
  void drain(Instant now);  // the agent ends: stop() once the runtime waits for nothing of the worker
  void stop(Instant now);   // now: no worker is started any more

  // About every message of the worker's stream and of the session. `message` is the whole one.
  Route from_worker(const function_rpc::Peeked& peeked, std::string_view message, Instant now);
  Route from_runtime(const function_rpc::Peeked& peeked, Instant now);
  void handle_reload_answer(bool is_good, std::string_view reason, std::string_view body, Instant now);
  void handle_specialized_answer(bool is_good, std::string_view reason, Instant now);
  void handle_function_loaded(std::string name);  // asked of the worker by the runtime
  // An invocation that was to be forwarded did not reach the worker: its stream ended before.
  void handle_unwritten(std::string_view invocation_id) { known_.remove(invocation_id); }

  // A session to the runtime that is not one before resumed; and one that is over for good.
  void handle_session_opened(Instant now);
  void handle_session_ended(Instant now);
  void handle_dial_failed(std::string_view reason, Instant now);  // it never can be reached
  void handle_connected(bool is_connected, Instant now);          // whether the session can be spoken on now

  void handle_stream_closed(Instant now);
  void handle_worker_ended(const WorkerEnd& end, Instant now);
  void handle_package_progress(const std::string& digest, Instant now);  // some of it came
  void handle_package_here(const std::string& digest, Instant now);  // all of it; it is unpacked or compared
  void handle_package(const std::string& digest, const std::string& folder, Instant now);
  void handle_package_failed(const std::string& digest, ErrorCode code, std::string_view reason, Instant now);
  void handle_timeout(Instant now);

  [[nodiscard]] std::optional<RelayStep> poll_step();
  [[nodiscard]] std::optional<WorkerStatus> poll_status();  // if it changed
  [[nodiscard]] std::optional<Instant> poll_timeout() const { return deadlines_.next(); }

  WorkerStatus status() const;
  bool has_command() const { return operation_.has_value(); }
  bool is_stopping() const { return stopping_; }
  bool is_stopped() const { return process_ == Process::Stopped; }
  std::size_t invocations() const { return known_.size(); }
  std::uint64_t restarts() const { return spawns_ > 0 ? spawns_ - 1 : 0; }

 private:
  enum class Process : std::uint8_t { Waiting, Starting, Up, Ending, Down, Stopped };
  enum class Loaded : std::uint8_t { Nothing, Asked, Yes };     // of the application, in this process
  enum class Announced : std::uint8_t { Nothing, Asked, Yes };  // on this session
  enum class Timer { Start, Init, Restart, Reload, Part, Whole, Count };
  enum class Kind : std::uint8_t { Specialize, Reassign, Release };
  struct Operation {
    RunId id;
    Kind kind{};
    Instant began{};
    std::optional<Application> candidate = std::nullopt;  // its package is being fetched
    bool is_package_here = false;                         // and now unpacked or compared
    std::uint32_t crashes = 0;
  };
  // What is done once the runtime waits for nothing of this worker.
  struct Parting {
    bool is_restart = false;
    bool is_stop = false;
    std::optional<RuntimeTarget> target = std::nullopt;
    Instant until = {};
  };
  // Requests that are answered in order, and of which an answer may be due to a session that is over.
  static constexpr std::size_t kPaired = 7;
  static std::optional<std::size_t> pair_of_request(function_rpc::Content content);
  static std::optional<std::size_t> pair_of_answer(function_rpc::Content content);

  // relay.cc: messages
  Route handle_init_request(const function_rpc::Peeked& peeked, Instant now);
  Route handle_init_response(const function_rpc::Peeked& peeked, Instant now);
  void announce();  // StartStream on the present session

  // relay_life.cc: the process, and what it is to become
  void begin(const WorkerCommand& command, const Specialize& specialize, Instant now);
  void begin(const WorkerCommand& command, const Reassign& reassign, Instant now);
  void begin(const WorkerCommand& command, const Release& release, Instant now);
  void begin(const WorkerCommand& command, const Resume& resume, Instant now);
  void dial(const RuntimeTarget& target);
  void adopt(Application application, std::string folder, Instant now);
  void spawn(Instant now);
  void restart(Instant now);            // a fresh process
  void end_blamed(std::string reason);  // and a fresh one after a while
  void forget_process();
  void advance(Instant now);  // the next step to where it should be
  void fail_application(std::string reason, ErrorCode code, Instant now);
  void finish(Instant now);
  void fail(ErrorCode code, std::string_view reason, Instant now);
  bool is_settled() const;
  bool is_initialised() const { return init_body_ && has_session_ && announced_ && !awaiting_init_; }
  bool is_candidate(const std::string& digest) const {
    return operation_ && operation_->candidate && operation_->candidate->package_digest == digest;
  }
  // The package that the present application waits for.
  bool is_awaited(const std::string& digest) const {
    return application_ && folder_.empty() && application_->package_digest == digest;
  }
  void remember();

  // relay_parting.cc: wanted ends
  void part(const Parting& wanted, Instant now);
  void time_part(Instant now);
  void part_now(Instant now);
  void stay_down(std::string_view body);
  // The runtime gives this worker nothing more, and gives elsewhere what never reached it.
  void tell_ended(std::string_view reason);

  RelayOptions options_;
  RuntimeTarget runtime_;
  Deadlines<Timer> deadlines_;
  std::deque<RelayStep> steps_;
  std::optional<Operation> operation_;
  std::optional<Parting> parting_;
  std::optional<WorkerStatus> told_;

  // The process.
  Process process_ = Process::Waiting;
  std::uint64_t spawns_ = 0;
  std::string worker_id_;
  Instant spawned_at_{};
  std::uint32_t failures_ = 0;
  bool asked_to_end_ = false;
  bool draining_ = false;                 // the agent ends
  bool stopping_ = false;                 // and the worker with it
  std::string end_reason_;                // why it was ended here, where it is to blame
  std::string start_stream_;              // its bytes
  std::optional<std::string> init_body_;  // of its WorkerInitResponse
  bool init_asked_ = false;               // of this process
  Loaded loaded_ = Loaded::Nothing;
  std::string reload_body_;
  std::array<std::uint32_t, kPaired> asked_{};  // on the present session
  std::array<std::uint32_t, kPaired> stale_{};  // on sessions before it

  // The session.
  bool has_session_ = false;
  bool announced_ = false;
  bool is_known_ = false;  // a worker of ours was announced on it
  bool awaiting_init_ = false;
  std::string init_request_id_;
  Announced specialized_ = Announced::Nothing;
  KnownInvocations known_;

  // What the worker is to be.
  bool is_drained_ = false;  // the runtime wants none; until the scheduler or an operator says otherwise
  bool is_drained_for_memory_ = false;
  std::optional<Application> application_;
  std::string folder_;          // empty: its package is being fetched or compared
  bool is_folder_new_ = false;  // it was fetched or compared for the next process
  std::vector<std::string> functions_;
  std::string last_error_;
};

}  // namespace windlass::agent
