// A small run with one case of each kind, and the text that a hostile peer would send.
#pragma once

#include <string>

#include "conformance/runner/report.h"

namespace windlass::conformance {

inline std::string hostile_text() {
  std::string text = "</script><script>alert(1)</script><img src=x onerror=alert(2)> ]]> & \" ' ";
  text += '\0';
  return text + "\x1B[2J\r\n\t\x7F \xFF\xC0\xAF\xED\xA0\x80 \xE2\x80\xAE \xC2\x9B \xEF\xBF\xBE end";
}

inline CaseResult sample_case(std::string id, Verdict behaviour, Level level = Level::Must,
                              int revision = 2) {
  CaseResult result;
  result.clause = id.substr(0, id.find('/'));
  result.id = std::move(id);
  result.area = "handshake";
  result.says = "A register before the handshake is refused.";
  result.level = level;
  result.revision = revision;
  result.behaviour = behaviour;
  result.outcome = behaviour == Verdict::Ok ? "done" : "other";
  result.expected = R"({"type": "control.reset"})";
  result.came = behaviour == Verdict::Ok ? "" : R"({"type": "control.ack"})";
  result.milliseconds = 12.5;
  result.steps = {R"({"connect": {}})"};
  result.wire = {{WireEvent::Kind::Step, 0, "", R"(1 {"connect": {}})"},
                 {WireEvent::Kind::Note, 0.25, "main", "connected"},
                 {WireEvent::Kind::Sent, 1, "main", R"({"type":"control.register","payload":{}})"},
                 {WireEvent::Kind::Received, 2.5, "main", R"({"type":"control.ack","payload":{"ok":true}})"}};
  return result;
}

inline RunReport sample_report() {
  RunReport report;
  report.title = "Scheduler of staging";
  report.subject = "wss://staging.example:7443";
  report.tool_version = "0.1.0";
  report.started_at = "2026-01-31T12:00:00Z";
  report.milliseconds = 65'000;
  report.revisions = {1, 2};
  report.cases = {sample_case("HSK-2/second", Verdict::Failed), sample_case("HSK-1/first", Verdict::Ok),
                  sample_case("HSK-1/first", Verdict::NonStrict, Level::Must, 1),
                  sample_case("HSK-3/should", Verdict::WrongCode, Level::Should),
                  sample_case("HSK-4/known", Verdict::Unimplemented)};
  report.cases[1].close = Verdict::Ok;
  report.cases[1].close_outcome = "1011";
  report.expected_failures = {"HSK-4/known@2"};
  return report;
}

}  // namespace windlass::conformance
