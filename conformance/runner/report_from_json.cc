// The JSON report read back. It may have been edited by hand or come from anybody, so every member is looked
// at.
#include <simdjson.h>

#include <array>
#include <limits>
#include <utility>

#include "conformance/runner/report.h"

namespace windlass::conformance {
namespace {

using Element = simdjson::dom::element;

// Remembers the first member that is wrong; everything after it is read for nothing.
class ReportReader final {
 public:
  std::string problem;

  void complain(const std::string& where, const std::string& what) {
    if (problem.empty()) problem = where + ' ' + what;
  }

  template <class T>
  T member(Element parent, const char* name, const std::string& where, const char* kind) {
    T value{};
    if (parent[name].get(value) != simdjson::SUCCESS)
      complain(where + '.' + name, std::string{"is not "} + kind);
    return value;
  }
  std::string text(Element parent, const char* name, const std::string& where) {
    return std::string{member<std::string_view>(parent, name, where, "text")};
  }
  double number(Element parent, const char* name, const std::string& where) {
    return member<double>(parent, name, where, "a number");
  }
  bool boolean(Element parent, const char* name, const std::string& where) {
    return member<bool>(parent, name, where, "true or false");
  }

  int revision(simdjson::simdjson_result<Element> value, const std::string& where) {
    std::int64_t number = 0;
    if (value.get(number) != simdjson::SUCCESS || number < 1 || number > std::numeric_limits<int>::max()) {
      complain(where, "is not a revision");
      return 0;
    }
    return static_cast<int>(number);
  }

  // One of the values, by the name to_string gives it.
  template <class T, std::size_t n>
  T named(Element parent, const char* name, const std::string& where, const std::array<T, n>& values) {
    const std::string is = text(parent, name, where);
    for (const T each : values) {
      if (to_string(each) == is) return each;
    }
    complain(where + '.' + name, "is '" + is + "', which is not known");
    return values.front();
  }

  template <class Use>
  void each(Element parent, const char* name, const std::string& where, const Use& use) {
    simdjson::dom::array elements;
    if (parent[name].get(elements) != simdjson::SUCCESS)
      return complain(where + '.' + name, "is not an array");
    std::size_t index = 0;
    for (const Element element : elements)
      use(element, where + '.' + name + '[' + std::to_string(index++) + ']');
  }
  std::vector<std::string> texts(Element parent, const char* name, const std::string& where) {
    std::vector<std::string> found;
    each(parent, name, where, [&](Element element, const std::string& at) {
      std::string_view value;
      if (element.get(value) != simdjson::SUCCESS) complain(at, "is not text");
      found.emplace_back(value);
    });
    return found;
  }
};

Verdict read_verdict(ReportReader& reader, Element parent, const char* name, const std::string& where) {
  const std::string is = reader.text(parent, name, where);
  const auto verdict = verdict_from(is);
  if (!verdict) reader.complain(where + '.' + name, "is '" + is + "', which is no verdict");
  return verdict.value_or(Verdict::HarnessError);
}

WireEvent read_event(ReportReader& reader, Element from, const std::string& where) {
  using Kind = WireEvent::Kind;
  WireEvent event;
  event.kind =
      reader.named(from, "kind", where, std::array{Kind::Sent, Kind::Received, Kind::Note, Kind::Step});
  event.milliseconds = reader.number(from, "milliseconds", where);
  event.connection = reader.text(from, "connection", where);
  event.text = reader.text(from, "text", where);
  return event;
}

CaseResult read_case(ReportReader& reader, Element from, const std::string& where) {
  CaseResult result;
  result.id = reader.text(from, "id", where);
  result.clause = reader.text(from, "clause", where);
  result.area = reader.text(from, "area", where);
  result.says = reader.text(from, "says", where);
  result.level = reader.named(from, "level", where, std::array{Level::Must, Level::Should, Level::May});
  result.role = reader.named(from, "role", where, std::array{Role::Scheduler, Role::Worker});
  result.revision = reader.revision(from["revision"], where + ".revision");
  result.negative = reader.boolean(from, "negative", where);
  result.behaviour = read_verdict(reader, from, "behaviour", where);
  if (!from["close"].is_null()) {
    result.close = read_verdict(reader, from, "close", where);
  }
  result.outcome = reader.text(from, "outcome", where);
  result.close_outcome = reader.text(from, "close_outcome", where);
  result.expected = reader.text(from, "expected", where);
  result.came = reader.text(from, "came", where);
  result.milliseconds = reader.number(from, "milliseconds", where);
  result.steps = reader.texts(from, "steps", where);
  reader.each(from, "wire", where, [&](Element event, const std::string& at) {
    result.wire.push_back(read_event(reader, event, at));
  });
  return result;
}

}  // namespace

Result<RunReport> report_from_json(std::string_view text) {
  const auto refuse = [](std::string reason) {
    return Error{ErrorCode::Internal, Blame::Local, std::move(reason)};
  };
  simdjson::dom::parser parser;
  Element root;
  if (const auto error = parser.parse(text.data(), text.size()).get(root)) {
    return refuse(std::string{"the report is not JSON: "} + simdjson::error_message(error));
  }
  std::string_view format;
  if (root["format"].get(format) != simdjson::SUCCESS || format != kReportFormat) {
    return refuse("this is no report of windlass-conformance: its member 'format' is not '" +
                  std::string{kReportFormat} + "'");
  }
  ReportReader reader;
  const std::string where = "report";
  RunReport report;
  report.title = reader.text(root, "title", where);
  report.subject = reader.text(root, "subject", where);
  report.tool_version = reader.text(root, "tool_version", where);
  report.started_at = reader.text(root, "started_at", where);
  report.milliseconds = reader.number(root, "milliseconds", where);
  report.strict = reader.boolean(root, "strict", where);
  reader.each(root, "revisions", where, [&](Element revision, const std::string& at) {
    report.revisions.push_back(reader.revision(Element(revision), at));
  });
  report.expected_failures = reader.texts(root, "expected_failures", where);
  report.stale = reader.texts(root, "stale", where);
  reader.each(root, "cases", where, [&](Element each, const std::string& at) {
    report.cases.push_back(read_case(reader, each, at));
  });
  if (!reader.problem.empty()) return refuse("the report cannot be read: " + reader.problem);
  return report;
}

}  // namespace windlass::conformance
