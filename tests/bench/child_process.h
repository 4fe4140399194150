// A program that a benchmark measures from outside: its processor time and its memory are its own. It ends
// with the object, and with the benchmark however that ends.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

namespace windlass::bench {

// Of any process of this machine: processor time of all its threads, user and system; and all that it holds
// in memory.
double process_nanoseconds(pid_t pid);
double process_resident_bytes(pid_t pid);

class ChildProcess final {
 public:
  // The first argument is the program; its standard error is what `read_line` reads.
  explicit ChildProcess(const std::vector<std::string>& arguments);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  std::string read_line();  // ends the benchmark when there is none any more
  double nanoseconds() const { return process_nanoseconds(pid_); }
  double resident_bytes() const { return process_resident_bytes(pid_); }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  std::FILE* out_ = nullptr;
};

}  // namespace windlass::bench
