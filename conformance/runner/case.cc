#include "conformance/runner/case.h"

#include <algorithm>
#include <set>

#include "conformance/runner/schema.h"

namespace windlass::conformance {
namespace {

Error wrong_case(const std::string& file, const std::string& what, SourceLine where = SourceLine::here()) {
  return {ErrorCode::Internal, Blame::Local, "the case " + file + " cannot be used: " + what, where};
}

std::string text_of(const json::value& value) {
  return std::string{value.as_string()};
}

Level level_of(const json::value& value) {
  if (value == "MUST") return Level::Must;
  return value == "SHOULD" ? Level::Should : Level::May;
}

Fault::Kind fault_kind(const json::value& value) {
  if (value == "drop") return Fault::Kind::Drop;
  if (value == "duplicate") return Fault::Kind::Duplicate;
  if (value == "delay") return Fault::Kind::Delay;
  return value == "reorder" ? Fault::Kind::Reorder : Fault::Kind::Corrupt;
}

Fault fault_of(const json::object& value) {
  Fault fault{.kind = fault_kind(value.at("do")), .match = value.at("match")};
  if (const auto* const times = value.if_contains("times")) fault.times = times->to_number<std::uint64_t>();
  if (const auto* const ms = value.if_contains("ms")) fault.delay = milliseconds{ms->to_number<int>()};
  return fault;
}

std::map<std::string, Verdict> verdicts_of(const json::object& value) {
  std::map<std::string, Verdict> verdicts;
  for (const auto& [outcome, verdict] : value) {
    verdicts[std::string{outcome}] = verdict_from(verdict.as_string()).value_or(Verdict::Failed);
  }
  return verdicts;
}

// The schema vouches for the types of what is read here.
Case case_of(const json::object& value, const std::string& file) {
  Case made;
  made.id = text_of(value.at("id"));
  made.clause = made.id.substr(0, made.id.find('/'));
  made.area = file.substr(0, file.find('/'));
  made.says = text_of(value.at("says"));
  made.level = level_of(value.at("level"));
  made.role = value.at("role") == "scheduler" ? Role::Scheduler : Role::Worker;
  made.negative = value.at("negative").as_bool();
  if (const json::value& revision = value.at("revision"); revision.is_string()) {
    made.revisions = {1, 2};
  } else {
    made.revisions = {revision.to_number<int>()};
  }
  if (const auto* const needs = value.if_contains("needs")) {
    for (const json::value& each : needs->as_array()) made.needs.push_back(text_of(each));
  }
  if (const auto* const worker = value.if_contains("worker")) made.worker = text_of(*worker);
  if (const auto* const duties = value.if_contains("auto")) {
    const auto is_on = [&](std::string_view name) {
      const auto* const duty = duties->as_object().if_contains(name);
      return duty == nullptr || duty->as_bool();
    };
    made.auto_ack = is_on("ack");
    made.auto_answer = is_on("answer");
    made.auto_replay = is_on("replay");
  }
  if (const auto* const faults = value.if_contains("faults")) {
    for (const json::value& each : faults->as_array()) made.faults.push_back(fault_of(each.as_object()));
  }
  if (const auto* const deadline = value.if_contains("deadline_ms")) {
    made.deadline = milliseconds{deadline->to_number<int>()};
  }
  made.steps = value.at("steps").as_array();
  made.behaviour = {{"done", Verdict::Ok}};
  if (const auto* const behaviour = value.if_contains("behaviour")) {
    made.behaviour = verdicts_of(behaviour->as_object());
  }
  if (const auto* const close = value.if_contains("close")) made.close = verdicts_of(close->as_object());
  return made;
}

}  // namespace

bool Case::needs_hook(std::string_view name) const {
  return std::find(needs.begin(), needs.end(), "hook:" + std::string{name}) != needs.end();
}

Result<std::vector<Case>> read_cases(const CaseTexts& texts, const std::string& schema) {
  const auto rules = JsonSchema::parse(schema);
  if (!rules) return rules.error();
  std::set<std::string> ids;
  for (const auto& [file, text] : texts) {
    boost::system::error_code wrong;
    const json::value value = json::parse(text, wrong);
    if (wrong) return wrong_case(file, "it is not JSON: " + wrong.message());
    if (const auto broken = (*rules)->violation(value)) return wrong_case(file, *broken);
    if (!ids.insert(text_of(value.at("id"))).second) return wrong_case(file, "another one has its id");
  }
  return read_checked_cases(texts);
}

std::vector<Case> read_checked_cases(const CaseTexts& texts) {
  std::vector<Case> cases;
  for (const auto& [file, text] : texts) cases.push_back(case_of(json::parse(text).as_object(), file));
  std::sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) { return a.id < b.id; });
  return cases;
}

}  // namespace windlass::conformance
