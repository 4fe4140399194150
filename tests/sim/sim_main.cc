// The command line of the simulator.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "tests/sim/mutants.h"
#include "tests/sim/runner.h"

namespace {

using windlass::sim::RunOptions;

constexpr const char* kHelp =
    R"(windlass-sim: worlds of one scheduler and some workers, hurt in many ways, checked by oracles.
One seed is one world; the same seed gives the same world and the same log, byte for byte.

  --seeds N          run N worlds, from --first on; stop at the first broken promise
  --first S          the first seed (default 1)
  --jobs J           processes (default: one per core)
  --seed S           run one world and print its whole event log
  --mutant NAME      with a planted bug (only windlass-sim-mutants)
  --catch-mutants    run each planted bug until it is caught, at most --seeds worlds each; exit 1 if one escapes
  --list-mutants     names of the planted bugs, and what each breaks
  --help             this text

examples
  windlass-sim --seeds 10000
  windlass-sim --seeds 500 --first 20000 --jobs 1
  windlass-sim --seed 4711 | less
  windlass-sim-mutants --mutant resume_skips_one --seeds 200
  windlass-sim-mutants --catch-mutants --seeds 2000

exit code: 0 every promise held, 1 one was broken, 2 wrong usage
)";

struct Arguments {
  RunOptions run;
  std::optional<std::uint64_t> seed;
  std::string mutant;
  bool has_count = false;
  bool catches_mutants = false;
};

int misuse(const std::string& text) {
  std::fprintf(stderr, "windlass-sim: %s (see --help)\n", text.c_str());
  return 2;
}

std::optional<std::uint64_t> number(const char* text) {
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != '\0') return std::nullopt;
  return value;
}

int run(const Arguments& arguments) {
  using Clock = std::chrono::steady_clock;
  const auto started = Clock::now();
  const auto result = windlass::sim::run_seeds(arguments.run);
  const double seconds = std::chrono::duration<double>(Clock::now() - started).count();
  const bool spread = windlass::sim::print_summary(result, seconds);
  if (result.failure) {
    std::printf("FAIL: seed %llu broke the promise '%s'\n",
                static_cast<unsigned long long>(result.failure->seed), result.failure->oracle.c_str());
  } else if (spread) {
    std::printf("PASS: every promise held in %llu worlds\n", static_cast<unsigned long long>(result.seeds));
  }
  return result.failure || !spread ? 1 : 0;
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments;
  arguments.run.jobs = std::max(1U, std::thread::hardware_concurrency());
  for (int i = 1; i < count; ++i) {
    const std::string_view flag = values[i];
    if (flag == "--help" || flag == "-h") return std::fputs(kHelp, stdout), 0;
    if (flag == "--list-mutants") return windlass::sim::print_mutants(), 0;
    if (flag == "--catch-mutants") {
      arguments.catches_mutants = true;
      continue;
    }
    if (i + 1 >= count) return misuse("'" + std::string{flag} + "' is unknown or wants a value");
    const char* const text = values[++i];
    if (flag == "--mutant") {
      arguments.mutant = text;
      continue;
    }
    const auto value = number(text);
    if (!value) return misuse(std::string{flag} + " wants a whole number, not '" + text + "'");
    if (flag == "--seeds") {
      if (*value == 0) return misuse("--seeds wants at least 1, because no world proves nothing");
      arguments.run.count = *value;
      arguments.has_count = true;
    } else if (flag == "--seed") {
      arguments.seed = value;
    } else if (flag == "--first") {
      arguments.run.first = *value;
    } else if (flag == "--jobs" && *value > 0 && *value <= 256) {
      arguments.run.jobs = static_cast<unsigned>(*value);
    } else {
      return misuse("'" + std::string{flag} + " " + text + "' is not understood");
    }
  }
  if (!arguments.mutant.empty() && !windlass::sim::activate_mutant(arguments.mutant)) {
    return misuse("there is no planted bug '" + arguments.mutant +
                  "' in this program; windlass-sim-mutants has them");
  }
  if (arguments.catches_mutants) return windlass::sim::catch_mutants(arguments.run);
  if (arguments.seed) return windlass::sim::replay(*arguments.seed);
  if (!arguments.has_count) return misuse("--seeds N or --seed S is wanted");
  return run(arguments);
}
