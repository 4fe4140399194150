#include "conformance/runner/suite.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "conformance/runner/player.h"

namespace windlass::conformance {
namespace {

void run_all(const Setup& setup, const std::vector<PlannedCase>& planned,
             const std::vector<std::size_t>& which, std::size_t jobs, const SuiteOptions& options,
             std::vector<CaseResult>& results) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < which.size(); i = next++) {
      const PlannedCase& each = planned[which[i]];
      options.on_started(each);
      results[which[i]] = Player{setup, *each.played, each.revision}.play();
      options.on_finished(results[which[i]]);
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < std::min(jobs, which.size()); ++i) threads.emplace_back(work);
  for (std::thread& each : threads) each.join();
}

}  // namespace

std::vector<CaseResult> run_suite(const Setup& setup, const std::vector<PlannedCase>& planned,
                                  const SuiteOptions& options) {
  std::vector<CaseResult> results(planned.size());
  std::vector<std::size_t> together;
  std::vector<std::size_t> alone;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    (planned[i].played->runs_alone() ? alone : together).push_back(i);
  }
  // Those that wait longest begin first, so that no thread is left with one of them at the end.
  std::stable_sort(together.begin(), together.end(), [&](std::size_t a, std::size_t b) {
    return planned[a].played->deadline > planned[b].played->deadline;
  });
  run_all(setup, planned, together, options.jobs, options, results);
  run_all(setup, planned, alone, 1, options, results);
  return results;
}

}  // namespace windlass::conformance
