#include "tests/sim/seed_run.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "tests/sim/crash_report.h"

namespace windlass::sim {
namespace {

// Twelve digits are short enough to read out, and two runs a second apart are far from each other.
constexpr std::uint64_t kFreshSeeds = 1'000'000'000'000;
constexpr std::uint64_t kMinutesMax = 7 * 24 * 60;
constexpr std::uint64_t kJobsMax = 256;

std::uint64_t fresh_seed() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  return 1 + static_cast<std::uint64_t>(micros) % kFreshSeeds;
}

std::optional<std::uint64_t> number(const char* text) {
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != '\0') return std::nullopt;
  return value;
}

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe{popen(command.c_str(), "r"), &pclose};
  if (!pipe) return {};
  std::string text;
  std::array<char, 256> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe.get()) != nullptr) text += buffer.data();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// What is wrong with the pair; empty: nothing.
std::string take(SeedRun& run, bool& has_first, std::string_view flag, const char* text) {
  if (flag == "--mutant") {
    run.mutant = text;
    return {};
  }
  const auto value = number(text);
  if (!value) return std::string{flag} + " wants a whole number, not '" + text + "'";
  if (flag == "--seeds") {
    if (*value == 0) return "--seeds wants at least 1, because no world proves nothing";
    run.count = value;
  } else if (flag == "--minutes") {
    if (*value == 0 || *value > kMinutesMax) return "--minutes wants 1 to " + std::to_string(kMinutesMax);
    run.minutes = std::chrono::minutes{*value};
  } else if (flag == "--first") {
    run.first = *value;
    has_first = true;
  } else if (flag == "--seed") {
    run.seed = value;
  } else if (flag == "--jobs") {
    if (*value == 0 || *value > kJobsMax) return "--jobs wants 1 to " + std::to_string(kJobsMax);
    run.jobs = static_cast<unsigned>(*value);
  } else {
    return "'" + std::string{flag} + "' is not known";
  }
  return {};
}

struct Found {
  std::uint64_t seed = 0;
  std::uint64_t count = 0;  // of worlds
  std::optional<BrokenPromise> broken;
};

Found run_worlds(Worlds& worlds, const SeedRun& run) {
  Found found;
  Seeds seeds{run};
  while (const auto seed = seeds.next()) {
    ++found.count;
    found.seed = *seed;
    begin_world(*seed, worlds.time_max());
    found.broken = worlds.run(*seed, false);
    end_world();
    if (found.broken) break;
  }
  return found;
}

int run_many(const SimProgram& program, Worlds& worlds, const SeedRun& run) {
  const auto started = std::chrono::steady_clock::now();
  print_first_seed(run);
  const Found found = run_worlds(worlds, run);
  const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  worlds.print_sum();
  if (found.broken) {
    print_failure(program, found.seed, found.broken->oracle, found.broken->what);
    return 1;
  }
  if (!worlds.hurt(found.count)) {
    std::puts("FAIL: the worlds do not hurt enough to prove anything; see the counters above");
    return 1;
  }
  std::printf("PASS: every promise held in %llu worlds (%.1f s)\n",
              static_cast<unsigned long long>(found.count), spent);
  return 0;
}

int catch_planted(Worlds& worlds, std::span<const PlantedBug> bugs, std::string_view& mutant,
                  const SeedRun& run) {
  print_first_seed(run);
  int escaped = 0;
  for (const PlantedBug& bug : bugs) {
    mutant = bug.name;
    const Found found = run_worlds(worlds, run);
    if (found.broken) {
      std::printf("caught   %-28s at seed %llu, after %llu worlds, by '%s'\n", std::string{bug.name}.c_str(),
                  static_cast<unsigned long long>(found.seed), static_cast<unsigned long long>(found.count),
                  found.broken->oracle.c_str());
    } else {
      ++escaped;
      std::printf("ESCAPED  %-28s %s\n", std::string{bug.name}.c_str(), std::string{bug.breaks}.c_str());
    }
  }
  return escaped == 0 ? 0 : 1;
}

int list(std::span<const PlantedBug> bugs) {
  for (const PlantedBug& bug : bugs) {
    std::printf("%-28s %s\n", std::string{bug.name}.c_str(), std::string{bug.breaks}.c_str());
  }
  return 0;
}

}  // namespace

Seeds::Seeds(const SeedRun& run, std::uint64_t from, std::uint64_t step)
    : first_(run.first), count_(run.count), at_(from), step_(step) {
  if (run.minutes) end_ = Clock::now() + *run.minutes;
}

std::optional<std::uint64_t> Seeds::next() {
  if ((count_ && at_ >= *count_) || (end_ && Clock::now() >= *end_)) return std::nullopt;
  const std::uint64_t seed = first_ + at_;
  at_ += step_;
  return seed;
}

ReadRun read_run(const SimProgram& program, int count, char** values) {
  SeedRun run;
  bool has_first = false;
  const auto misuse = [&](const std::string& text) {
    std::fprintf(stderr, "%.*s: %s (see --help)\n", static_cast<int>(program.name.size()),
                 program.name.data(), text.c_str());
    return ReadRun{{}, 2};
  };
  for (int i = 1; i < count; ++i) {
    const std::string_view flag = values[i];
    if (flag == "--help" || flag == "-h") {
      std::fputs(program.help, stdout);
      return {{}, 0};
    }
    if (flag == "--list-mutants") {
      run.lists_mutants = true;
    } else if (flag == "--catch-mutants") {
      run.catches_mutants = true;
    } else if (i + 1 >= count) {
      return misuse("'" + std::string{flag} + "' is unknown or wants a value");
    } else if (const std::string wrong = take(run, has_first, flag, values[++i]); !wrong.empty()) {
      return misuse(wrong);
    }
  }
  const bool has_end = run.count || run.minutes;
  if (!has_end && !run.seed && !run.lists_mutants) {
    return misuse("--seeds N, --minutes N or --seed S is wanted");
  }
  if (!has_first) run.first = fresh_seed();
  return {run, std::nullopt};
}

void print_first_seed(const SeedRun& run) {
  const auto number = static_cast<unsigned long long>(run.first);
  std::printf("first seed %llu at commit %s (--first %llu repeats this run)\n", number,
              source_commit().c_str(), number);
  std::fflush(stdout);
}

void print_failure(const SimProgram& program, std::uint64_t seed, std::string_view oracle,
                   std::string_view what) {
  const auto number = static_cast<unsigned long long>(seed);
  std::printf(
      "FAIL: seed %llu at commit %s broke the promise '%.*s'\n  %.*s\nreplay it with: ./dev sim %.*s--seed "
      "%llu\n",
      number, source_commit().c_str(), static_cast<int>(oracle.size()), oracle.data(),
      static_cast<int>(what.size()), what.data(), static_cast<int>(program.dev_name.size()),
      program.dev_name.data(), number);
}

int run_program(const SimProgram& program, Worlds& worlds, std::span<const PlantedBug> bugs,
                std::string_view* mutant, int count, char** values) {
  const auto [run, exit_code] = read_run(program, count, values);
  if (exit_code) return *exit_code;
  if (run.lists_mutants) return list(bugs);
  if (mutant == nullptr && (run.catches_mutants || !run.mutant.empty())) {
    std::fprintf(stderr, "only %s-mutants has planted bugs\n", std::string{program.name}.c_str());
    return 2;
  }
  if (mutant != nullptr && !run.mutant.empty()) *mutant = run.mutant;
  report_crashes(program);
  if (run.catches_mutants) return catch_planted(worlds, bugs, *mutant, run);
  if (!run.seed) return run_many(program, worlds, run);
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // the log up to a crash is seen too
  begin_world(*run.seed, worlds.time_max());
  const auto broken = worlds.run(*run.seed, true);
  end_world();
  worlds.print_sum();
  if (broken) {
    print_failure(program, *run.seed, broken->oracle, broken->what);
    return 1;
  }
  std::puts("PASS: every promise held in this world");
  return 0;
}

std::string source_commit() {
  const std::string git = std::string{"git -C '"} + WINDLASS_SOURCE_FOLDER + "' ";
  const std::string commit = output_of(git + "rev-parse --short=12 HEAD 2>/dev/null");
  if (commit.empty()) return "unknown";
  const bool has_changes =
      !output_of(git + "status --porcelain --untracked-files=no 2>/dev/null | head -n 1").empty();
  return has_changes ? commit + "+" : commit;
}

}  // namespace windlass::sim
