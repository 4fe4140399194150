// Decides everything a runtime does: which worker holds what, which gets an invocation, what becomes of it
// when anything fails. Does no I/O and reads no clock. Every submitted invocation ends in exactly one
// Outcome.
//
// Drive loop: handle_* or a command, then poll_send, poll_close, poll_outcome, poll_signal, poll_log,
// poll_note until empty, and set the alarm to poll_timeout.
#pragma once

#include <cstdint>
#include <map>
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
  std::string peer = {};    // for people
  std::string tenant = {};  // of an agent
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

struct AssignedApplication {
  std::string metadata_version;  // that serves; empty before a worker was ready with one
  bool is_awaited = true;        // false: its workers failed or are lost, and none is on its way
};
using AssignedApplications = std::map<std::string, AssignedApplication, std::less<>>;

struct Invocation {
  InvocationId id;
  JobHostKey job_host;
  std::string function;                     // by name
  std::shared_ptr<const std::string> body;  // see InvocationRequest
  std::string sticky_key = {};              // routed to the same worker while it is there; empty: any
  std::optional<Duration> timeout = {};     // the function's own, of one try; none: the default
  // How long the caller waits, from the submission on. Then it is told so, and the function is asked to stop;
  // the worker is not blamed.
  std::optional<Duration> patience = {};
  std::uint32_t delivery_count = 1;  // by the source; above its limit a failure is a dead letter
  // May be tried on another worker after one was lost; so may a function that says so of itself.
  bool is_idempotent = false;
  bool is_once = false;     // its input can be read once: no second try of what was sent
  std::uint64_t owner = 0;  // comes back with what is said of it
};

enum class Settlement : std::uint8_t { Complete, Abandon, DeadLetter };

enum class Cause : std::uint8_t {
  None,            // Complete
  FunctionFailed,  // the function threw, after its retries
  Cancelled,
  TimedOut,
  CallerLeft,  // whoever asked waits no longer
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

// How soon a lost worker is to be replaced: High where no other can take an invocation now, else Medium after
// a silence or a crash and Low after a timeout or a drain.
enum class Urgency : std::uint8_t { Low, Medium, High };
std::string_view to_string(Urgency urgency);

// What the scheduler should know at once.
struct Signal {
  enum class Kind : std::uint8_t { NoFreeSlot, SlotFree, Replace, ScaleUp, ScaleDown };
  Kind kind{};
  JobHostKey job_host;
  WorkerId worker = {};  // Replace: the lost one
  Urgency urgency = Urgency::Low;
  std::string reason = {};
  bool is_agents = false;  // Replace: the lost one's agent brings the next by itself
  bool is_urgent() const { return urgency == Urgency::High; }
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
    FunctionsDropped,
    InvocationRetried,
    UnknownResponse,
    BadMessage,
    MessageUnreadable,
    Backpressure,
    MemoryPressure,
    MessageHeld,
    Switched,
    StatusAnswered,
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
                          Instant now);  // the peer breaks the channel's rules: it ends
  // One message of a worker could not be read. It is left out; whatever it belongs to runs out of time.
  void handle_unreadable(ChannelId channel, std::string_view reason, Instant now);
  // A session without a connection: probes wait, nothing fails until it lasted for lost_after.
  void handle_detached(ChannelId channel, Instant now);
  void handle_attached(ChannelId channel, Instant now);
  void handle_leaving(ChannelId channel, Instant now);  // its agent drains: it is given nothing new
  // Of its agent, by heartbeats: an unfit one is given what no other worker has a slot for.
  void handle_fitness(ChannelId channel, bool is_fit);
  // What its worker serves is not its own any more, and so it gets nothing new; or it is again.
  void handle_trust(ChannelId channel, bool is_trusted, Instant now);
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
  // The scheduler's word, in place of all before: which applications are served here, in which version. Those
  // of the settings are served beside them.
  void set_assigned(AssignedApplications applications);
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
  // The metadata version of an application that serves, if it has functions here: the one that is assigned;
  // where nobody assigns, the newest.
  std::optional<JobHostKey> find_job_host(std::string_view application_id) const;
  bool is_awaiting() const;                                 // what is served here is not known yet
  bool is_assigned(std::string_view application_id) const;  // to be served here, be it here or not
  std::vector<std::string> absent_applications() const;  // assigned, and nobody here can say what they serve
  // Whether the scheduler expects a worker of it; true also where it did not say.
  bool awaits_worker_of(std::string_view application_id) const;
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
