#include "tests/sim/crash_report.h"

#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>

namespace windlass::sim {
namespace {

// What is ready when a signal comes; a handler may neither allocate nor format.
struct Ready {
  std::string commit;
  std::string dev_name;
  std::array<char, 160> head{};
  std::array<char, 160> tail{};
  volatile std::sig_atomic_t is_running = 0;
};

Ready& ready() {
  static Ready one;
  return one;
}

constexpr std::array kFatal = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGPROF};
std::array<struct sigaction, kFatal.size()> before;                 // a sanitizer has handlers of its own
alignas(std::max_align_t) std::array<char, 1 << 16> handler_stack;  // endless recursion leaves no other

void put(const char* text) {
  // Nothing can be done about a result that is not there.
  [[maybe_unused]] const auto written = write(STDOUT_FILENO, text, std::strlen(text));
}

void on_fatal(int signal, siginfo_t* cause, void* /*context*/) {
  write_crash(signal);
  for (std::size_t i = 0; i < kFatal.size(); ++i) sigaction(kFatal[i], &before[i], nullptr);
  // A fault comes again by itself, to whoever handled it before. What somebody sent does not.
  if (signal == SIGPROF || cause->si_code <= 0) raise(signal);
}

void set_timer(std::chrono::milliseconds time) {
  itimerval limit{};
  limit.it_value.tv_sec = time.count() / 1000;
  limit.it_value.tv_usec = time.count() % 1000 * 1000;
  setitimer(ITIMER_PROF, &limit, nullptr);
}

}  // namespace

void report_crashes(const SimProgram& program) {
  ready().commit = source_commit();
  ready().dev_name = program.dev_name;
  stack_t stack{};
  stack.ss_sp = handler_stack.data();
  stack.ss_size = handler_stack.size();
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_fatal;
  action.sa_flags = SA_ONSTACK | SA_SIGINFO;
  for (std::size_t i = 0; i < kFatal.size(); ++i) sigaction(kFatal[i], &action, &before[i]);
}

void write_crash(int signal) {
  const Ready& known = ready();
  if (known.is_running == 0) return;
  put(known.head.data());
  put(signal == SIGPROF ? "'every-world-ends'" : "'no-crash'");
  put(known.tail.data());
}

void begin_world(std::uint64_t seed, std::chrono::milliseconds time_max) {
  Ready& known = ready();
  known.is_running = 0;
  const auto number = static_cast<unsigned long long>(seed);
  std::snprintf(known.head.data(), known.head.size(), "\nFAIL: seed %llu at commit %s broke the promise ",
                number, known.commit.c_str());
  std::snprintf(known.tail.data(), known.tail.size(), "\nreplay it with: ./dev sim %s--seed %llu\n",
                known.dev_name.c_str(), number);
  known.is_running = 1;
  set_timer(time_max);
}

void end_world() {
  set_timer(std::chrono::milliseconds{0});
  ready().is_running = 0;
}

}  // namespace windlass::sim
