// Starts programs under windlass-run and learns how they ended, on a thread of its own. A run has one file,
// which its watcher locks; file and watcher outlive the agent, so that an agent that was killed finds out
// what became of everything it had started.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "protocol/base/result.h"
#include "worker-agent/core/run.h"

namespace windlass::agent {

struct RunnerOptions {
  std::string folder;                    // of the runs' files; made if it is not there
  std::string watcher;                   // the path of windlass-run
  std::vector<std::string> environment;  // "NAME=value", all that programs see
};

class CommandRunner final {
 public:
  // Called on the runner's thread.
  using Finished = std::function<void(RunId run, RunOutcome outcome)>;

  static Result<std::unique_ptr<CommandRunner>> open(RunnerOptions options, Finished finished);
  ~CommandRunner();  // running programs go on; nothing more is told
  CommandRunner(const CommandRunner&) = delete;
  CommandRunner& operator=(const CommandRunner&) = delete;

  // What an earlier agent started. NeverBegun: it took no effect, and its file is gone. Watched: how it ended
  // is told like that of any run.
  enum class Fate : std::uint8_t { NeverBegun, Watched };
  Fate adopt(const RunId& run);
  // Files that no journal entry knows are of runs whose results were recorded.
  void remove_all_but(const std::vector<RunId>& known);

  // From any thread.
  void run(RunRequest request);
  void remove(const RunId& run);  // its result is recorded
  void stop_all();                // ends what this agent started; what waits to be started is not

 private:
  struct Watched {
    RunId id;
    int fd = -1;  // the read end of a pipe that closes with the watcher; -1: adopted, the lock tells
    int pid = 0;  // of our own watchers
  };

  CommandRunner(RunnerOptions options, Finished finished, int wake);
  std::string path_of(const RunId& run) const { return options_.folder + "/" + run.value(); }
  void loop(const std::stop_token& stop);
  void start(const RunRequest& request);
  void finish(const Watched& watched);
  void end_watched();
  void wake();

  RunnerOptions options_;
  Finished finished_;
  int wake_;
  std::mutex mutex_;
  std::vector<RunRequest> requested_;  // guarded by mutex_
  std::vector<RunId> adopted_;         // guarded by mutex_
  std::atomic<bool> stop_wanted_{false};
  std::vector<Watched> watched_;  // of the thread
  std::jthread thread_;
};

}  // namespace windlass::agent
