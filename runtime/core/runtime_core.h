// Decides everything a runtime does: which worker holds what, which gets an invocation, what becomes of it
// when anything fails. Does no I/O and reads no clock. Every submitted invocation ends in exactly one
// Outcome.
//
// Drive loop: handle_* or a command, then poll_send, poll_close, poll_outcome, poll_signal, poll_log,
// poll_note until empty, and set the alarm to poll_timeout.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/result.h"
#include "protocol/base/time.h"
#include "runtime/core/messages.h"
#include "runtime/core/options.h"
#include "runtime/core/views.h"

namespace windlass::runtime {

enum class ChannelKind : std::uint8_t { Session, Grpc };

// What the shell knows of a channel before its worker says a word.
struct ChannelFacts {
  ChannelKind kind = ChannelKind::Session;
  // Worker ids this channel may claim: this one, or one that begins with it and a dot. Empty: any that is not
  // in use.
  std::string identity;
  bool is_agent = false;  // may say WorkerSpecialized and is answered
  std::string application =
      {};  // a worker that dials in by itself for this configured application; empty: a placeholder
  std::string peer = {};  // for people
};

// Why a channel ended, in terms of seed statuses; a session's end is Closed, or Unavailable when it could not
// be resumed.
enum class ChannelEnd : std::uint8_t {
  Closed,
  Cancelled,
  Unavailable,
  DeadlineExceeded,
  ResourceExhausted,
  Internal,
  ProtocolError
};

// An application that this runtime knows from its settings, for workers that dial in by themselves.
struct ConfiguredApplication {
  ApplicationVersion version;
  std::string directory;
  TextMap environment;
  std::vector<FunctionRef> functions;  // from function.json; used when the worker does not index
};

struct Invocation {
  InvocationId id;
  JobHostKey job_host;
  std::string function;                     // by name
  std::shared_ptr<const std::string> body;  // see InvocationRequest
  std::string sticky_key = {};              // routed to the same worker while it is there; empty: any
  std::optional<Duration> timeout = {};     // of one try; none: the function's, or the default
  std::uint32_t delivery_count = 1;         // by the source; above its limit a failure is a dead letter
  bool is_idempotent = false;               // may be tried on another worker after one was lost
  std::uint64_t owner = 0;                  // comes back with what is said of it
};

enum class Settlement : std::uint8_t { Complete, Abandon, DeadLetter };

enum class Cause : std::uint8_t {
  None,            // Complete
  FunctionFailed,  // the function threw, after its retries
  Cancelled,
  TimedOut,
  WorkerLost,  // crash, hang, corrupted, terminated
  LoadFailed,  // remembered
  UnknownFunction,
  NoWorker,    // none came in time
  Overloaded,  // bounded queue or tracker full, memory pressure
  TooLarge,    // no worker can be sent it
  JobHostFailed,
  Orphaned,
  Stopping,  // the runtime ends
};

struct Outcome {
  InvocationId id;
  std::uint64_t owner = 0;
  Settlement settlement = Settlement::Complete;
  Cause cause = Cause::None;
  std::string reason = {};  // one sentence; empty when complete
  RpcResult result = {};    // what the function said last, if it answered
  std::string body = {};    // InvocationResponse, serialized, if it answered
  std::uint32_t tries = 0;
  WorkerId worker = {};  // that had it last
  Duration took{};
};

struct Send {
  ChannelId channel;
  HostMessage message;
};

struct CloseChannel {
  ChannelId channel;
  std::string reason;
  bool is_clean = true;  // gRPC: OK, else an error status
};

// What the scheduler should know at once.
struct Signal {
  enum class Kind : std::uint8_t { NoFreeSlot, SlotFree, Replace, ScaleUp, ScaleDown };
  Kind kind{};
  JobHostKey job_host;
  WorkerId worker = {};    // Replace: the lost one
  bool is_urgent = false;  // it was the application's last
  std::string reason;
};

// For the log: user logs of one invocation come in order and before its outcome.
struct WorkerLog {
  WorkerId worker;
  JobHostKey job_host;
  std::string function;     // empty: of no invocation
  std::uint64_t owner = 0;  // of the invocation
  Log log;
};

// What happened, for logs and metrics. Nothing needs to be done about it.
struct Note {
  enum class Kind : std::uint8_t {
    WorkerConnected,
    WorkerInitialized,
    WorkerSpecializing,
    WorkerReady,
    WorkerUnhealthy,
    WorkerRecovered,
    WorkerDraining,
    WorkerAbandoned,
    WorkerDisconnected,
    JobHostCreated,
    JobHostStopped,
    JobHostFailed,
    FunctionLoadFailed,
    InvocationRetried,
    UnknownResponse,
    BadMessage,
    Backpressure,
    MemoryPressure,
    MessageHeld,
    Switched,
  };
  Kind kind{};
  WorkerId worker = {};
  JobHostKey job_host = {};
  InvocationId invocation = {};
  std::string function = {};
  std::string reason = {};
  std::optional<Duration> took = {};
};

class RuntimeCore final {
 public:
  RuntimeCore(RuntimeOptions options, std::uint64_t seed);
  ~RuntimeCore();
  RuntimeCore(const RuntimeCore&) = delete;
  RuntimeCore& operator=(const RuntimeCore&) = delete;

  void add_application(ConfiguredApplication application);

  // In: channels.
  void handle_opened(ChannelId channel, ChannelFacts facts, Instant now);
  void handle_message(ChannelId channel, WorkerMessage message, Instant now);
  void handle_bad_message(ChannelId channel, std::string_view reason,
                          Instant now);  // it could not be read: the channel ends
  void handle_detached(ChannelId channel,
                       Instant now);  // a session without a connection: probes wait, nothing fails
  void handle_attached(ChannelId channel, Instant now);
  void handle_blocked(ChannelId channel, Instant now);  // its bounded queue is full
  void handle_writable(ChannelId channel, Instant now);
  void handle_unsendable(ChannelId channel, const InvocationId& invocation, std::string_view reason,
                         Instant now);  // over the limit
  void handle_closed(ChannelId channel, ChannelEnd end, std::string_view reason, Instant now);
  // In: the rest.
  void handle_memory(double utilization, Instant now);
  void handle_job_host_failed(const JobHostKey& key, std::string_view reason, Instant now);  // of a listener
  void handle_timeout(Instant now);

  // Commands. An error is for the caller alone: the invocation was not taken and has no outcome.
  [[nodiscard]] Result<Done> submit(Invocation invocation, Instant now);
  void cancel(const InvocationId& invocation, Instant now);
  // A worker that dialled in by itself: the environment reload is sent from here.
  [[nodiscard]] Result<Done> specialize(const WorkerId& worker, const std::string& application_id,
                                        Instant now);
  [[nodiscard]] Result<Done> set_split(const JobHostKey& key,
                                       std::vector<std::pair<std::string, std::uint32_t>> weights);
  [[nodiscard]] Result<Done> drain(const WorkerId& worker, std::string_view reason, Instant now);
  void stop(Instant now);  // no more intake; what is under way may end until the drain time is over

  // Out.
  [[nodiscard]] std::optional<Send> poll_send();
  [[nodiscard]] std::optional<CloseChannel> poll_close();
  [[nodiscard]] std::optional<Outcome> poll_outcome();
  [[nodiscard]] std::optional<Signal> poll_signal();
  [[nodiscard]] std::optional<WorkerLog> poll_log();
  [[nodiscard]] std::optional<Note> poll_note();
  [[nodiscard]] std::optional<Instant> poll_timeout() const;

  // Views (views.h), for operators, the HTTP front and listeners.
  std::vector<WorkerView> workers() const;
  std::vector<JobHostView> job_hosts() const;
  const TextMap* capabilities(const JobHostKey& key) const;   // of its workers
  const std::string* host_json(const JobHostKey& key) const;  // as its first worker told it
  // The newest metadata version of an application that has functions here.
  std::optional<JobHostKey> find_job_host(std::string_view application_id) const;
  std::vector<FunctionRef> functions(const JobHostKey& key) const;
  std::uint32_t free_slots(
      const JobHostKey& key) const;  // intake is credit: a listener takes no more than this
  // What still holds of the signals said before, for whoever did not hear them.
  std::vector<Signal> standing_signals() const;
  RuntimeHealth health() const;
  std::size_t in_flight() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace windlass::runtime
