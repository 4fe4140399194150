// A conformance case as docs/conformance-cases.md describes it, read from its file and checked against
// case.schema.json.
#pragma once

#include <boost/json.hpp>
#include <map>
#include <string>
#include <vector>

#include "conformance/runner/verdict.h"
#include "protocol/base/result.h"
#include "protocol/base/time.h"

namespace windlass::conformance {

namespace json = boost::json;

struct Fault {
  enum class Kind : std::uint8_t { Drop, Duplicate, Delay, Reorder, Corrupt } kind = Kind::Drop;
  json::value match;
  std::uint64_t times = 1;
  Duration delay = milliseconds{100};
};

struct Case {
  std::string id;
  std::string clause;
  std::string area;
  std::string says;
  Level level = Level::Must;
  Role role = Role::Scheduler;
  std::vector<int> revisions;
  bool negative = false;
  std::vector<std::string> needs;
  std::string worker = "serve";
  bool auto_ack = true;
  bool auto_answer = true;
  bool auto_replay = true;
  std::vector<Fault> faults;
  Duration deadline = seconds{10};
  json::array steps;
  std::map<std::string, Verdict> behaviour;
  std::map<std::string, Verdict> close;  // empty: not judged

  bool needs_hook(std::string_view name) const;
  // Disturbs every other session of a scheduler, so it runs alone.
  bool runs_alone() const { return needs_hook("restart") || needs_hook("stop"); }
};

// Texts by their path below the cases' folder: "handshake/register-first.json".
using CaseTexts = std::map<std::string, std::string>;

// In order of id. An error names the file, the place and what is wrong with it.
Result<std::vector<Case>> read_cases(const CaseTexts& texts, const std::string& schema);
// Those that were checked before.
std::vector<Case> read_checked_cases(const CaseTexts& texts);

}  // namespace windlass::conformance
