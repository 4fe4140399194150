#include "conformance/runner/report.h"
#include "conformance/runner/report_text.h"

namespace windlass::conformance {
namespace {

// Writes members and elements, a line each, indented; commas come by themselves.
class JsonLines final {
 public:
  void begin(char bracket, std::string_view name = {}) {
    next(name);
    out_ += bracket;
    first_ = true;
    ++depth_;
  }
  void end(char bracket) {
    --depth_;
    if (!first_) new_line();
    out_ += bracket;
    first_ = false;
  }
  void text(std::string_view name, std::string_view value) { raw(name, json_string(value)); }
  void number(std::string_view name, double value) { raw(name, json_number(value)); }
  void boolean(std::string_view name, bool value) { raw(name, value ? "true" : "false"); }
  void raw(std::string_view name, std::string_view json) {
    next(name);
    out_ += json;
  }
  void texts(std::string_view name, const std::vector<std::string>& values) {
    begin('[', name);
    for (const std::string& each : values) text({}, each);
    end(']');
  }
  std::string finish() && { return std::move(out_ += '\n'); }

 private:
  void new_line() {
    out_ += '\n';
    out_.append(depth_ * 2, ' ');
  }
  void next(std::string_view name) {
    if (!first_) out_ += ',';
    if (depth_ > 0) new_line();
    first_ = false;
    if (!name.empty()) (out_ += json_string(name)) += ": ";
  }

  std::string out_;
  std::size_t depth_ = 0;
  bool first_ = true;
};

void write_wire(JsonLines& json, const std::vector<WireEvent>& wire) {
  json.begin('[', "wire");
  for (const WireEvent& event : wire) {
    json.begin('{');
    json.text("kind", to_string(event.kind));
    json.number("milliseconds", event.milliseconds);
    json.text("connection", event.connection);
    json.text("text", event.text);
    json.end('}');
  }
  json.end(']');
}

void write_case(JsonLines& json, const RunReport& report, const CaseResult& result) {
  json.begin('{');
  json.text("id", result.id);
  json.text("clause", result.clause);
  json.text("area", result.area);
  json.text("says", result.says);
  json.text("level", to_string(result.level));
  json.text("role", to_string(result.role));
  json.number("revision", result.revision);
  json.boolean("negative", result.negative);
  json.text("verdict", to_string(worst(result)));
  json.text("standing", to_string(standing(report, result)));
  json.text("behaviour", to_string(result.behaviour));
  json.raw("close", result.close ? json_string(to_string(*result.close)) : "null");
  json.text("outcome", result.outcome);
  json.text("close_outcome", result.close_outcome);
  json.text("expected", result.expected);
  json.text("came", result.came);
  json.number("milliseconds", result.milliseconds);
  json.texts("steps", result.steps);
  write_wire(json, result.wire);
  json.end('}');
}

}  // namespace

std::string report_json(const RunReport& report) {
  JsonLines json;
  json.begin('{');
  json.text("format", kReportFormat);
  json.text("title", report.title);
  json.text("subject", report.subject);
  json.text("tool_version", report.tool_version);
  json.text("started_at", report.started_at);
  json.number("milliseconds", report.milliseconds);
  json.boolean("strict", report.strict);
  json.begin('[', "revisions");
  for (const int revision : report.revisions) json.number({}, revision);
  json.end(']');
  json.number("exit_code", exit_code(report));
  json.begin('{', "summary");
  const auto verdicts = count_verdicts(report);
  for (std::size_t i = 0; i < kVerdicts; ++i) {
    json.number(to_string(static_cast<Verdict>(i)), static_cast<double>(verdicts[i]));
  }
  json.end('}');
  json.texts("expected_failures", report.expected_failures);
  json.texts("stale", report.stale);
  json.begin('[', "cases");
  for (const CaseResult* each : in_order(report)) write_case(json, report, *each);
  json.end(']');
  json.end('}');
  return std::move(json).finish();
}

}  // namespace windlass::conformance
