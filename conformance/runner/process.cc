#include "conformance/runner/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "protocol/base/check.h"

extern char** environ;

namespace windlass::conformance {

Process::Process(const std::string& command, const std::map<std::string, std::string>& environment,
                 const std::string& log_file) {
  // Everything that allocates comes before the fork: other threads may hold the allocator's locks.
  std::vector<std::string> texts;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string text{*each};
    if (!environment.contains(text.substr(0, text.find('=')))) texts.push_back(text);
  }
  for (const auto& [name, value] : environment) texts.push_back(name + "=" + value);
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  pid_ = ::fork();
  CHECK(pid_ >= 0);
  if (pid_ == 0) {
    ::setpgid(0, 0);
    const int log = ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::dup2(nothing, 0);
    ::dup2(log, 1);
    ::dup2(log, 2);
    ::execle("/bin/sh", "sh", "-c", command.c_str(), nullptr, pointers.data());
    ::_exit(126);
  }
  ::setpgid(pid_, pid_);
}

Process::~Process() {
  ::kill(-pid_, SIGKILL);
  if (!ended_) ::waitpid(pid_, nullptr, 0);
}

void Process::signal(int number) const {
  ::kill(-pid_, number);
}

std::optional<int> Process::exit_code() {
  int status = 0;
  if (!ended_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    ended_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return ended_;
}

}  // namespace windlass::conformance
