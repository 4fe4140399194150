// Decides what becomes of every delivered command: run it, answer it from the journal, or refuse it. Each
// takes effect at most once and is answered, whatever sessions and processes come and go.
//
// Order of effects: a batch of log bytes is synced, THEN what it recorded happens. A begun command runs only
// after its begin record is on the disk; a result leaves only after its completion record is. A frame is
// owned once its begin record is on the disk, so that a long command holds up none behind it. A command that
// was not answered when its session ends is sent again all the same, and the journal knows how far it got.
//
//   handle*() -> poll_batch() -> the shell appends and syncs -> handle_committed() -> poll_run(),
//   poll_worker_command(), poll_result(), poll_own(), poll_finished_run(), poll_note()
//
// Programs are run by others and outlive this process. Commands about the language worker are done inside it,
// one at a time; they may be repeated, so one that a crash interrupted is forgotten and comes again.
//
// The journal in memory and the log say the same at every poll_batch(), so the log can be compacted there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "protocol/base/ring.h"
#include "protocol/base/text_pair.h"
#include "protocol/session/journal.h"
#include "protocol/session/journal_log.h"
#include "protocol/session/session_event.h"
#include "worker-agent/core/command.h"
#include "worker-agent/core/package_fetch.h"
#include "worker-agent/core/run.h"

namespace windlass::agent {

struct AgentConfig {
  std::vector<ExecRule> rules;
  std::uint32_t max_parallel = 4;
  bool has_worker = false;  // a language worker, which biz.worker.* is about
  JournalConfig journal = {};
  std::string result_id_prefix = "r";         // different for every process: result ids are never used twice
  std::size_t results_max = 4096;             // kept for the next session; the journal knows the rest
  std::size_t result_bytes_max = 768 * 1024;  // of a program's result, below what a frame carries
  // Commands and results that are kept for frames which are owned. Beyond either the frame of a command is
  // owned with its answer, and the window closes until there is room.
  std::size_t owned_max = 1024;
  std::size_t owned_bytes_max = 64 * 1024 * 1024;
  std::size_t compact_bytes_min = 4 * 1024 * 1024;
  Duration clock_record = seconds{300};  // entries age in an idle process too
};

struct Batch {
  Bytes bytes;
  bool replaces = false;  // the whole log anew: write aside, sync, rename
};

struct Owned {
  SessionHandle session{0};
  Seq next = 0;
};

// For logs and metrics.
struct AgentNote {
  enum class Kind : std::uint8_t { Received, Started, Finished, Answered, Repeated, Refused, Dropped };
  Kind kind{};
  std::string type;
  std::string id;
  std::string corr;
  std::string code;
  std::optional<Seq> seq = std::nullopt;
  std::optional<Duration> took = std::nullopt;  // of a finished task
};

// A command that was under way when the process before this one ended.
struct Interrupted {
  std::string id;
  std::string corr;
  RunId run;
};

struct Recovered {
  std::size_t valid_bytes = 0;  // truncate the log to this
  std::vector<Interrupted> interrupted;
};

class AgentCore final {
 public:
  AgentCore(AgentConfig config, Instant now);
  AgentCore(const AgentCore&) = delete;
  AgentCore& operator=(const AgentCore&) = delete;

  // Once, before anything else. Every interrupted run is then said to have never begun, or to be running
  // still; the latter ends with handle_finished.
  Result<Recovered> recover(BytesView log, Instant now);
  void handle_never_begun(const Interrupted& interrupted, Instant now);
  void handle_still_running(const Interrupted& interrupted);

  // In.
  void handle(OwnerEvent event, Instant now);
  void handle_finished(const RunId& run, const RunOutcome& outcome, Instant now);
  void handle_worker_command_done(const RunId& run, std::string result, Duration took, Instant now);
  void handle_committed(Instant now);  // the batch is on the disk
  void handle_timeout(Instant now);
  void start_drain() { drain_is_ours_ = draining_ = true; }

  // Out. At most one batch is outstanding; the others are polled until empty.
  [[nodiscard]] std::optional<Batch> poll_batch(Instant now);
  [[nodiscard]] std::optional<RunRequest> poll_run();
  [[nodiscard]] std::optional<WorkerCommand> poll_worker_command();
  bool has_worker_command() const { return to_do_.has_value(); }
  // A part of a package: nothing is recorded of it, since it is asked for again.
  [[nodiscard]] std::optional<Message> poll_part();
  // The next result. Give it to the session and say what came of that; until then it stays the next.
  [[nodiscard]] const Message* poll_result() const;
  void handle_sent(Seq seq);
  void handle_blocked() { blocked_ = true; }                        // until Writable
  void handle_unsendable(ErrorCode code, std::string_view reason);  // another message takes its place
  [[nodiscard]] std::optional<Owned> poll_own();
  [[nodiscard]] std::optional<RunId> poll_finished_run();  // its result is on the disk: its file may go
  [[nodiscard]] std::optional<AgentNote> poll_note();
  [[nodiscard]] bool poll_drained();  // once per session: everything is done and given to the session
  [[nodiscard]] std::optional<Instant> poll_timeout() const;

  std::uint64_t inflight() const { return work_.size(); }
  bool has_session() const { return session_ != SessionHandle{0}; }
  bool is_draining() const { return draining_; }
  std::size_t results_waiting() const { return outbox_.size(); }
  // Told to drain, done with everything, and every result is the scheduler's.
  bool has_nothing_to_say() const {
    return drain_is_ours_ && drained_said_ && outbox_.empty() && sent_.empty();
  }

 private:
  struct Waiting {
    SessionHandle session{0};
    Seq seq = 0;
  };
  struct Work {
    enum class State : std::uint8_t { Recording, Queued, Running } state = State::Recording;
    std::variant<RunRequest, WorkerCommand> job;
    std::string type{kExec};
    std::vector<Waiting> waiting;  // frames that are not owned yet
    std::size_t bytes = 0;         // of the command
    bool dropped = false;          // its session ended before it began
  };
  struct Answer {
    TextPair key;
    Message message;
    std::vector<Waiting> waiting;
    bool is_result = true;  // of the journal's entry; false: a refusal, which any number may follow
  };
  struct Sent {
    Seq seq = 0;
    std::string message_id;
    TextPair key;
    bool is_result = true;
  };
  // What happens when the bytes are on the disk.
  struct Step {
    Bytes bytes;
    std::vector<TextPair> begun;
    std::vector<Answer> answers;
    std::vector<RunId> finished;
    bool empty() const { return bytes.empty() && begun.empty() && answers.empty() && finished.empty(); }
  };
  template <class T>
  using ByKey = std::unordered_map<TextPair, T, TextPairHash, TextPairEqual>;

  // agent_core.cc: commands
  void deliver(const Delivered& delivered, Instant now);
  void deliver_echo(const Message& message, Waiting from, Instant now);
  void begin(const Message& message, const Digest& digest, Waiting from, Instant now);
  void own_begun();
  void drop_unbegun(Instant now);
  void drop(const TextPair& key, Instant now);
  void forget(TextPairView key, Instant now);
  void release(Step step, Instant now);
  void start_runs();
  void start_worker_command();
  void complete(const TextPair& key, Work work, const std::string& result, AgentNote finished, Instant now);
  void note(AgentNote::Kind kind, const Message& message, std::string_view code, std::optional<Seq> seq);

  // agent_results.cc: answers and sessions
  void answer(TextPairView key, const MessageParts& parts, std::vector<Waiting> waiting, bool is_result);
  void refuse(const Message& message, ErrorCode code, std::string_view reason, Waiting from);
  void queue(Answer answer);
  void start_session(SessionHandle session);
  void end_session(const Ended& ended, Instant now);
  void acknowledge(Seq next);
  void settle(const std::vector<Waiting>& waiting);
  std::string next_result_id();

  AgentConfig config_;
  Journal journal_;
  Journal echoes_;  // an echo has no effect: it is remembered only to notice that an id is used twice
  JournalLog log_;
  std::size_t log_bytes_ = 0;
  std::size_t compacted_bytes_ = 0;
  Instant clock_due_;

  Step pending_;
  std::optional<Step> committing_;
  ByKey<Work> work_;
  std::map<RunId, TextPair> runs_;  // of those that are running
  std::deque<TextPair> queue_;      // begun, waiting for a place
  std::deque<RunRequest> to_run_;
  std::deque<TextPair> worker_queue_;  // begun, about the language worker
  bool running_worker_ = false;        // the first of them
  std::optional<WorkerCommand> to_do_;
  std::deque<Message> parts_;  // polled in the turn they come in
  std::deque<RunId> finished_;
  Ring<AgentNote> notes_;

  SessionHandle session_{0};
  std::deque<Answer> outbox_;
  std::deque<Sent> sent_;
  ByKey<bool> answering_;  // results in outbox_ or sent_
  std::set<Seq> settled_;
  Seq owned_next_ = 0;
  bool owned_moved_ = false;
  bool blocked_ = false;
  bool draining_ = false;
  bool drain_is_ours_ = false;
  bool drained_said_ = false;
  std::uint64_t result_counter_ = 0;
};

}  // namespace windlass::agent
