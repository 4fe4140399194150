#include "tests/bench/child_process.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <fcntl.h>

#include <csignal>
#include <cstdlib>
#include <fstream>

#include "protocol/base/check.h"

namespace windlass::bench {

ChildProcess::ChildProcess(const std::vector<std::string>& arguments) {
  std::vector<char*> texts;
  for (const std::string& each : arguments) texts.push_back(const_cast<char*>(each.c_str()));
  texts.push_back(nullptr);
  int ends[2];
  CHECK(::pipe2(ends, O_CLOEXEC) == 0);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  CHECK(pid_ >= 0);
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // it died before we asked to be told
    ::dup2(ends[1], STDERR_FILENO);
    ::execvp(texts[0], texts.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  out_ = ::fdopen(ends[0], "r");
  CHECK(out_ != nullptr);
}

ChildProcess::~ChildProcess() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  std::fclose(out_);
}

std::string ChildProcess::read_line() {
  char* line = nullptr;
  std::size_t size = 0;
  const ssize_t length = ::getline(&line, &size, out_);
  std::string text = length > 0 ? std::string{line, static_cast<std::size_t>(length)} : "";
  std::free(line);
  CHECK(length > 0);
  return text;
}

double process_nanoseconds(pid_t pid) {
  clockid_t clock{};
  CHECK(::clock_getcpuclockid(pid, &clock) == 0);
  timespec spent{};
  CHECK(::clock_gettime(clock, &spent) == 0);
  return static_cast<double>(spent.tv_sec) * 1e9 + static_cast<double>(spent.tv_nsec);
}

double process_resident_bytes(pid_t pid) {
  std::ifstream statm{"/proc/" + std::to_string(pid) + "/statm"};
  double pages = 0;
  statm >> pages >> pages;
  CHECK(pages > 0);
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

}  // namespace windlass::bench
