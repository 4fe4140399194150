// Many cases side by side: each on one thread at a time, those that disturb others alone and last.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "conformance/runner/case.h"
#include "conformance/runner/setup.h"

namespace windlass::conformance {

struct PlannedCase {
  const Case* played = nullptr;
  int revision = 2;
};

struct SuiteOptions {
  std::size_t jobs = 1;
  std::function<void(const PlannedCase&)> on_started;  // from any thread
  std::function<void(const CaseResult&)> on_finished;  // likewise
};

// In the order planned.
std::vector<CaseResult> run_suite(const Setup& setup, const std::vector<PlannedCase>& planned,
                                  const SuiteOptions& options);

}  // namespace windlass::conformance
