// A command of the user's, run by the shell in a process group of its own.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace windlass::conformance {

class Process final {
 public:
  // `log_file` takes what it says. The environment is added to the runner's own.
  Process(const std::string& command, const std::map<std::string, std::string>& environment,
          const std::string& log_file);
  ~Process();  // the whole group is killed
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const;
  // Its exit code once it has ended, 128 + n after signal n. Does not wait.
  std::optional<int> exit_code();

 private:
  int pid_ = -1;
  std::optional<int> ended_;
};

}  // namespace windlass::conformance
