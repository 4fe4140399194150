#include "tests/sim/runner.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/sim/crash_report.h"
#include "tests/sim/world.h"

namespace windlass::sim {
namespace {

constexpr std::size_t kTailLines = 40;

// What a child process tells its parent, in shared memory, so that it is known even if the child dies.
struct Report {
  std::uint64_t seed = 0;  // being run
  std::uint64_t done = 0;
  Stats stats;
  bool has_failed = false;
  char oracle[64] = {};
  char what[400] = {};
};

template <std::size_t N>
void copy_text(char (&to)[N], std::string_view text) {
  const std::size_t size = std::min(text.size(), N - 1);
  std::memcpy(to, text.data(), size);
  to[size] = '\0';
}

void run_child(Seeds seeds, Report& report) {
  while (const auto seed = seeds.next()) {
    report.seed = *seed;
    begin_world(*seed);
    World world{WorldOptions::from_seed(report.seed), false};
    const bool held = world.run();
    report.stats.add(world.context().stats);
    ++report.done;
    if (held) continue;
    copy_text(report.oracle, world.context().violation->oracle);
    copy_text(report.what, world.context().violation->what);
    report.has_failed = true;
    return;
  }
}

void print_tail(const std::string& text) {
  std::size_t from = text.size();
  for (std::size_t lines = 0; from > 0 && lines <= kTailLines; --from) {
    if (text[from - 1] == '\n' && ++lines > kTailLines) break;
  }
  std::fwrite(text.data() + from, 1, text.size() - from, stdout);
}

// A failed CHECK aborts; the log so far is the most useful thing to see then.
const Context* crashing_context = nullptr;

void on_signal(int signal) {
  if (crashing_context != nullptr) print_tail(crashing_context->log.text());
  std::printf(signal == SIGPROF ? "the world does not end\n" : "the process aborted\n");
  std::fflush(stdout);
  _exit(1);
}

void print_log(const Context& context) {
  std::fwrite(context.log.text().data(), 1, context.log.text().size(), stdout);
  std::fflush(stdout);
}

void on_replay_signal(int signal) {
  print_log(*crashing_context);
  write_crash(signal);
  std::signal(signal, SIG_DFL);
  raise(signal);
}

// Runs the seed again in a process of its own and shows how it ended.
void show_failure(std::uint64_t seed) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    World world{WorldOptions::from_seed(seed), true};
    crashing_context = &world.context();
    for (const int fatal : {SIGABRT, SIGSEGV, SIGFPE}) std::signal(fatal, on_signal);
    std::signal(SIGPROF, on_signal);
    begin_world(seed);
    world.run();
    print_tail(world.context().log.text());
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
}

void print_progress(const RunResult& so_far, const SeedRun& run) {
  std::printf("%llu seeds", static_cast<unsigned long long>(so_far.seeds));
  if (run.count) std::printf(" of %llu", static_cast<unsigned long long>(*run.count));
  std::printf("\n");
  std::fflush(stdout);
}

unsigned jobs_of(const SeedRun& run) {
  if (run.jobs > 0) return run.jobs;
  const unsigned cores = std::thread::hardware_concurrency();
  return cores > 0 ? cores : kJobsDefault;
}

RunResult gather(std::span<const Report> reports) {
  RunResult result;
  for (const Report& report : reports) {
    result.seeds += report.done;
    result.stats.add(report.stats);
  }
  return result;
}

}  // namespace

RunResult run_seeds(const SeedRun& run, Noise noise) {
  std::fflush(stdout);
  const bool is_loud = noise == Noise::Loud;
  const unsigned jobs = jobs_of(run);
  const std::uint64_t progress = run.count ? std::max<std::uint64_t>(*run.count / 10, 100) : 1000;
  const std::size_t bytes = sizeof(Report) * jobs;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  const std::span<Report> reports{new (memory) Report[jobs], jobs};
  std::vector<pid_t> children;
  for (unsigned job = 0; job < jobs; ++job) {
    const pid_t child = fork();
    if (child == 0) {
      if (!is_loud) std::freopen("/dev/null", "w", stderr);
      run_child(Seeds{run, job, jobs}, reports[job]);
      _exit(reports[job].has_failed ? 1 : 0);
    }
    children.push_back(child);
  }

  std::optional<Failure> failure;
  std::size_t running = children.size();
  std::uint64_t printed = 0;
  while (running > 0) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, WNOHANG);
    if (ended == 0) {
      usleep(20'000);
      const RunResult so_far = gather(reports);
      if (is_loud && so_far.seeds >= printed + progress) {
        printed = so_far.seeds;
        print_progress(so_far, run);
      }
      continue;
    }
    const auto child = std::ranges::find(children, ended);
    if (child == children.end()) continue;
    --running;
    const Report& report = reports[static_cast<std::size_t>(child - children.begin())];
    if (status == 0 || failure) continue;
    const char* const death = WTERMSIG(status) == SIGPROF ? "every-world-ends" : "no-crash";
    failure = Failure{report.seed, report.has_failed ? report.oracle : death, report.what};
    for (const pid_t other : children) {
      if (other != ended) kill(other, SIGKILL);
    }
  }
  RunResult result = gather(reports);
  result.failure = failure;
  munmap(memory, bytes);
  if (failure && is_loud) {
    std::printf("\nthe last lines of the log of seed %llu:\n",
                static_cast<unsigned long long>(failure->seed));
    show_failure(failure->seed);
  }
  return result;
}

int replay(const SimProgram& program, std::uint64_t seed) {
  const WorldOptions options = WorldOptions::from_seed(seed);
  World world{options, true};
  crashing_context = &world.context();
  report_crashes(program);
  for (const int fatal : {SIGABRT, SIGSEGV, SIGFPE, SIGPROF}) std::signal(fatal, on_replay_signal);
  begin_world(seed);
  const bool held = world.run();
  end_world();
  print_log(world.context());
  if (held) {
    std::printf("seed %llu: every promise held\n", static_cast<unsigned long long>(seed));
    return 0;
  }
  const Violation& violation = *world.context().violation;
  print_failure(program, seed, violation.oracle, violation.what);
  return 1;
}

bool print_summary(const RunResult& result, double wall_seconds) {
  std::printf("\n%llu seeds in %.1f s (%.1f ms each)\n", static_cast<unsigned long long>(result.seeds),
              wall_seconds,
              result.seeds == 0 ? 0.0 : 1000 * wall_seconds / static_cast<double>(result.seeds));
  int column = 0;
  result.stats.each([&](std::string_view name, std::uint64_t value) {
    std::printf("  %-22.*s %12llu%s", static_cast<int>(name.size()), name.data(),
                static_cast<unsigned long long>(value), ++column % 3 == 0 ? "\n" : "");
  });
  if (column % 3 != 0) std::printf("\n");
  std::uint64_t total = 0;
  for (const std::uint64_t count : result.stats.backoff_deciles) total += count;
  std::printf("  waiting times before a dial, in tenths of what the backoff allows:");
  bool spread = true;
  for (const std::uint64_t count : result.stats.backoff_deciles) {
    const double share = total == 0 ? 0 : 100.0 * static_cast<double>(count) / static_cast<double>(total);
    std::printf(" %.1f%%", share);
    if (total >= 5000 && (share < 8 || share > 12)) spread = false;
  }
  std::printf("\n");
  if (!spread) std::printf("the promise 'reconnects-spread' is broken: the waiting times are bunched\n");
  return spread;
}

}  // namespace windlass::sim
