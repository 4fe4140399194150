#include "conformance/runner/verdict.h"

#include <algorithm>
#include <array>

#include "protocol/base/check.h"

namespace windlass::conformance {
namespace {

// In the order of the enumeration.
constexpr std::array<std::string_view, kVerdicts> kVerdictNames{
    "OK", "NON-STRICT", "INFORMATIONAL", "WRONG-CODE", "UNCLEAN", "UNIMPLEMENTED", "FAILED", "HARNESS-ERROR"};

// What a strict run refuses is worse than what no run refuses, wherever the enumeration has it.
int badness(Verdict verdict) {
  switch (verdict) {
    case Verdict::Ok:
      return 0;
    case Verdict::Informational:
      return 1;
    case Verdict::NonStrict:
      return 2;
    default:
      return 3 + static_cast<int>(verdict);
  }
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  const auto at = static_cast<std::size_t>(verdict);
  CHECK(at < kVerdictNames.size());
  return kVerdictNames[at];
}

std::optional<Verdict> verdict_from(std::string_view text) {
  const auto found = std::ranges::find(kVerdictNames, text);
  if (found == kVerdictNames.end()) return std::nullopt;
  return static_cast<Verdict>(found - kVerdictNames.begin());
}

std::string_view to_string(Level level) {
  switch (level) {
    case Level::Must:
      return "MUST";
    case Level::Should:
      return "SHOULD";
    case Level::May:
      return "MAY";
  }
  CHECK(false);
}

std::string_view to_string(Role role) {
  switch (role) {
    case Role::Scheduler:
      return "scheduler";
    case Role::Worker:
      return "worker";
  }
  CHECK(false);
}

Verdict worst(const CaseResult& result) {
  if (!result.close) return result.behaviour;
  return badness(*result.close) > badness(result.behaviour) ? *result.close : result.behaviour;
}

bool passes(const CaseResult& result, bool strict) {
  switch (worst(result)) {
    case Verdict::Ok:
    case Verdict::Informational:
      return true;
    case Verdict::NonStrict:
      return !strict;
    default:
      return false;
  }
}

bool counts(const CaseResult& result, bool strict) {
  if (passes(result, strict)) return false;
  return result.level == Level::Must || (result.level == Level::Should && strict);
}

}  // namespace windlass::conformance
