// The language worker as a process: started under windlass-run, which confines it, listened to, ended. It
// dies with the agent, however that ends, and so does whatever it started.
//
// What it prints goes line by line to whoever asked, long lines cut and floods thinned out; its last lines of
// standard error are told with its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/result.h"
#include "protocol/base/time.h"
#include "worker-agent/core/confinement.h"
#include "worker-agent/core/relay.h"

namespace windlass::agent {

struct WorkerOutputLimits {
  std::size_t line_bytes_max = 8 * 1024;   // the rest of a longer one is left out
  std::uint32_t lines_per_second = 200;    // beyond a burst of five seconds' worth
  std::size_t last_errors_max = 16;        // lines told with its end
  std::size_t last_error_bytes_max = 512;  // of each
};

struct WorkerLaunch {
  std::string program;
  std::vector<std::string> arguments;    // without the program
  std::vector<std::string> environment;  // "NAME=value", all it sees
  std::string folder;                    // where it runs
  std::string supervisor;                // the path of windlass-run
  Confinement confinement;
  int user_lock = -1;  // the supervisor holds it too: it outlives an agent that is killed for a moment
};

struct WorkerLine {
  bool is_error = false;       // of standard error
  std::string_view text;       // UTF-8 or not
  bool is_cut = false;         // there was more
  std::uint64_t left_out = 0;  // lines before it that were too many
};

struct StopGrace {
  Duration word = seconds{5};  // after it was told by its stream, before SIGTERM
  Duration term = seconds{2};  // after that, before SIGKILL
};

class LanguageWorker final {
 public:
  // Both are called on the process's thread.
  struct Callbacks {
    std::function<void(const WorkerLine& line)> line;
    std::function<void(WorkerEnd end)> ended;  // once for every start()
  };
  static Result<std::unique_ptr<LanguageWorker>> open(const WorkerOutputLimits& limits, Callbacks callbacks);
  ~LanguageWorker();  // a worker that still runs is killed
  LanguageWorker(const LanguageWorker&) = delete;
  LanguageWorker& operator=(const LanguageWorker&) = delete;

  void start(WorkerLaunch launch);  // one at a time
  void stop(const StopGrace& grace);
  int pid() const;  // of the worker itself; 0: none

 private:
  class Inside;
  explicit LanguageWorker(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

}  // namespace windlass::agent
