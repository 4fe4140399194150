// What every benchmark shares: timing as the median of five interleaved rounds, bars as printed lines, and
// the
// --smoke flag. Absolute times are noise on a shared machine, so bars are ratios of cases timed in one run.
//
//   int main(int argc, char** argv) {
//     bench::Run run{argc, argv};
//     const auto [parse, read] = run.measure(bench::Case{"parse", [&] { ... }}, bench::Case{"read", [&] { ...
//     }}); run.bar("read_vs_parse", read.ratio_to(parse), "<=", 0.3); return run.exit_code();
//   }
#pragma once

#include <time.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace windlass::bench {

// Makes the compiler believe `value` is used, so that the work that made it stays.
template <class T>
inline void keep(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

inline constexpr std::size_t kRounds = 5;
using Samples = std::array<double, kRounds>;

inline double median(Samples samples) {
  std::sort(samples.begin(), samples.end());
  return samples[kRounds / 2];
}

struct Timing {
  std::string name;
  Samples rounds{};  // nanoseconds per call

  double nanoseconds() const { return median(rounds); }

  // The median of the ratios of the rounds: two cases timed next to one another share the machine's mood.
  double ratio_to(const Timing& other) const {
    Samples ratios{};
    for (std::size_t i = 0; i < kRounds; ++i) ratios[i] = rounds[i] / other.rounds[i];
    return median(ratios);
  }
};

// `body` is called over and over; `calls_per_body` is how many units one call stands for.
template <class Body>
struct Case {
  Case(std::string case_name, Body case_body, double units = 1)
      : name(std::move(case_name)), body(std::move(case_body)), calls_per_body(units) {}
  std::string name;
  Body body;
  double calls_per_body;
};

class Run {
 public:
  Run(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc) only_ = argv[i + 1];
      smoke_ = smoke_ || std::strcmp(argv[i], "--smoke") == 0;
    }
  }

  // A smoke run only shows that the benchmark works: short rounds, and bars print without judging.
  bool is_smoke() const { return smoke_; }

  // A benchmark of several sections runs all of them, or the one that --only names.
  bool wants(std::string_view section) const { return only_.empty() || only_ == section; }

  // Times all cases in turn, five times over, and prints each median. Returns an array in the order given.
  template <class... Bodies>
  std::array<Timing, sizeof...(Bodies)> measure(Case<Bodies>... cases) {
    std::array<Timing, sizeof...(Bodies)> timings{Timing{cases.name, {}}...};
    std::array<std::uint64_t, sizeof...(Bodies)> counts{calibrate(cases.body)...};
    for (std::size_t round = 0; round < kRounds; ++round) {
      std::size_t i = 0;
      ((timings[i].rounds[round] = time(cases.body, counts[i]) / cases.calls_per_body, ++i), ...);
    }
    for (const Timing& timing : timings) {
      std::printf("time %s %.1f ns\n", timing.name.c_str(), timing.nanoseconds());
    }
    return timings;
  }

  // Prints `bar <name> <value> <op> <limit> pass|fail`; op is "<=" or ">=".
  void bar(std::string_view name, double value, std::string_view op, double limit) {
    const bool pass = op == "<=" ? value <= limit : value >= limit;
    if (smoke_) {
      std::printf("smoke %.*s %.3g\n", static_cast<int>(name.size()), name.data(), value);
      return;
    }
    failed_ = failed_ || !pass;
    std::printf("bar %.*s %.3g %.*s %.3g %s\n", static_cast<int>(name.size()), name.data(), value,
                static_cast<int>(op.size()), op.data(), limit, pass ? "pass" : "fail");
  }

  int exit_code() const { return failed_ ? 1 : 0; }

 private:
  static double thread_nanoseconds() {
    timespec spent{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return static_cast<double>(spent.tv_sec) * 1e9 + static_cast<double>(spent.tv_nsec);
  }

  // Nanoseconds per call over `count` calls.
  template <class Body>
  static double time(Body& body, std::uint64_t count) {
    const double start = thread_nanoseconds();
    for (std::uint64_t i = 0; i < count; ++i) body();
    return (thread_nanoseconds() - start) / static_cast<double>(count);
  }

  // How many calls make one round; also warms caches and branch predictors up.
  template <class Body>
  std::uint64_t calibrate(Body& body) const {
    const double round_ns = smoke_ ? 1e5 : 4e7;
    std::uint64_t count = 1;
    for (;;) {
      const double spent = time(body, count) * static_cast<double>(count);
      if (spent >= round_ns / 4) {
        const double wanted = static_cast<double>(count) * round_ns / spent;
        return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(wanted));
      }
      count *= 2;
    }
  }

  std::string only_;
  bool smoke_ = false;
  bool failed_ = false;
};

}  // namespace windlass::bench
