// What a case comes to, on each of its two axes, and how a run of cases ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace windlass::conformance {

enum class Verdict : std::uint8_t {
  Ok,
  NonStrict,
  Informational,
  WrongCode,
  Unclean,
  Unimplemented,
  Failed,
  HarnessError,
};
constexpr std::size_t kVerdicts = 8;

std::string_view to_string(Verdict verdict);  // "OK", "NON-STRICT", ...
std::optional<Verdict> verdict_from(std::string_view text);

enum class Level : std::uint8_t { Must, Should, May };
std::string_view to_string(Level level);

enum class Role : std::uint8_t { Scheduler, Worker };
std::string_view to_string(Role role);

// One line of a case's wire log.
struct WireEvent {
  enum class Kind : std::uint8_t {
    Sent,      // by the runner
    Received,  // from the judged
    Note,      // what the runner did or saw beside frames: connected, cut, closed 1011, hook, exit
    Step,      // a step of the case begins; `text` says which
  };
  Kind kind = Kind::Note;
  double milliseconds = 0;  // since the case began
  std::string connection;   // empty where none is meant
  std::string text;         // of a frame: its JSON; secrets are masked
};

struct CaseResult {
  std::string id;      // HSK-1/register-first
  std::string clause;  // HSK-1
  std::string area;    // the folder: handshake
  std::string says;
  Level level = Level::Must;
  Role role = Role::Scheduler;
  int revision = 2;  // of this run: a case of both has two results
  bool negative = false;
  Verdict behaviour = Verdict::HarnessError;
  std::optional<Verdict> close;  // none: not judged
  std::string outcome;           // done, silence, closed, ...
  std::string close_outcome;     // 1011, tcp, open; empty: not judged
  std::string expected;          // of the step that decided, in words and JSON
  std::string came;              // what came instead; empty when all is well
  double milliseconds = 0;
  std::vector<std::string> steps;  // as written
  std::vector<WireEvent> wire;
};

// The worse of both axes.
Verdict worst(const CaseResult& result);
// Whether it counts as passed; NON-STRICT does unless `strict`.
bool passes(const CaseResult& result, bool strict);
// Whether a failure counts: of a SHOULD only when `strict`, of a MAY never.
bool counts(const CaseResult& result, bool strict);

}  // namespace windlass::conformance
