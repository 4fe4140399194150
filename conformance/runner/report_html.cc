#include <algorithm>
#include <map>

#include "conformance/runner/pretty_json.h"
#include "conformance/runner/report.h"
#include "conformance/runner/report_html_parts.h"
#include "conformance/runner/report_text.h"
#include "protocol/base/clip.h"

namespace windlass::conformance {
namespace {

// A page is for looking; the JSON report has everything.
constexpr std::size_t kShownBytesMax = 16 * 1024;  // of one frame
constexpr std::size_t kShownEventsMax = 400;       // of one case: the first and the last

std::string class_of(Verdict verdict) {
  std::string name = "v-" + std::string{to_string(verdict)};
  std::ranges::transform(name, name.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return name;
}

// Says the verdict to whoever cannot tell the colours.
std::string_view sign_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::Ok:
      return "✓";
    case Verdict::NonStrict:
      return "~";
    case Verdict::Informational:
      return "i";
    case Verdict::WrongCode:
      return "#";
    case Verdict::Unclean:
      return "/";
    case Verdict::Unimplemented:
      return "–";
    case Verdict::Failed:
      return "✗";
    case Verdict::HarnessError:
      return "?";
  }
  return "?";
}

std::string badge(Verdict verdict) {
  return "<span class=\"v " + class_of(verdict) + "\"><span aria-hidden=\"true\">" +
         std::string{sign_of(verdict)} + "</span> " + std::string{to_string(verdict)} + "</span>";
}

std::string fragment_of(const CaseResult& result) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string fragment{'#'};
  for (const char c : visible(case_key(result))) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '/' || c == '@';
    if (plain) {
      fragment += c;
    } else {
      ((fragment += '%') += kHex[byte >> 4U]) += kHex[byte & 15U];
    }
  }
  return fragment;
}

std::string shown_json(std::string_view text) {
  if (text.size() <= kShownBytesMax) return escaped(pretty_json(text));
  return escaped(clip(text, kShownBytesMax)) + "\n… " + std::to_string(text.size()) + " bytes in all";
}

std::string wire_line(const WireEvent& event) {
  const bool sent = event.kind == WireEvent::Kind::Sent;
  const bool is_frame = sent || event.kind == WireEvent::Kind::Received;
  const std::string kind{to_string(event.kind)};
  std::string who =
      is_frame ? (sent ? "<b aria-hidden=\"true\">→</b> sent" : "<b aria-hidden=\"true\">←</b> received")
               : kind;
  if (!event.connection.empty()) who += " · " + escaped(event.connection);
  const std::string type = is_frame ? escaped(type_of_frame(event.text)) : "";
  return "<li class=\"" + kind + "\"><time>" + json_number(event.milliseconds) +
         " ms</time><span class=\"who\">" + who + "</span><div>" +
         (type.empty() ? "" : "<span class=\"type\">" + type + "</span>") + "<pre>" + shown_json(event.text) +
         "</pre></div></li>\n";
}

std::string wire_log(const std::vector<WireEvent>& wire) {
  std::string html = "<ol class=\"wire\">\n";
  const std::size_t skipped = wire.size() > kShownEventsMax ? wire.size() - kShownEventsMax : 0;
  for (std::size_t i = 0; i < wire.size(); ++i) {
    if (skipped > 0 && i == kShownEventsMax / 2) {
      WireEvent gap;
      gap.milliseconds = wire[i].milliseconds;
      gap.text = std::to_string(skipped) + " lines are left out here; the JSON report has them";
      html += wire_line(gap);
      i += skipped;
    }
    html += wire_line(wire[i]);
  }
  return html + "</ol>\n";
}

std::string fact(std::string_view name, std::string_view value) {
  if (value.empty()) return {};
  return "<dt>" + std::string{name} + "</dt><dd>" + escaped(value) + "</dd>\n";
}

std::string case_details(const CaseResult& result) {
  std::string html = "<details><summary>" + escaped(result.says) + "</summary><div class=\"inside\">\n<dl>\n";
  html += fact("Clause", result.clause) + fact("Judged", to_string(result.role));
  html += fact("Kind", result.negative ? "the runner breaks a rule, or a fault happens"
                                       : "everything is as it should be");
  html += fact("Outcome", result.outcome) + fact("Connection ended", result.close_outcome) + "</dl>\n";
  if (!result.expected.empty() || !result.came.empty()) {
    html += "<div class=\"pair\"><div class=\"box expected\"><h3>Expected</h3><pre>" +
            shown_json(result.expected) + "</pre></div>";
    if (!result.came.empty())
      html += "<div class=\"box came\"><h3>Came</h3><pre>" + shown_json(result.came) + "</pre></div>";
    html += "</div>\n";
  }
  html += "<h3>Steps</h3><ol class=\"steps\">\n";
  for (const std::string& step : result.steps) html += "<li><pre>" + shown_json(step) + "</pre></li>\n";
  html += "</ol>\n<h3>On the wire (→ sent by the runner, ← received from the judged)</h3>\n" +
          wire_log(result.wire);
  return html + "</div></details>";
}

std::string standing_tag(Standing stands) {
  if (stands == Standing::Expected) return "<span class=\"tag\">expected failure</span>";
  if (stands == Standing::Tolerated) return "<span class=\"tag\">does not count</span>";
  return {};
}

std::string case_rows(const RunReport& report, const CaseResult& result) {
  const Standing stands = standing(report, result);
  const auto data = [](std::string_view name, std::string_view value) {
    return " data-" + std::string{name} + "=\"" + escaped(value) + '"';
  };
  std::string html = "<tr id=\"" + escaped(case_key(result)) + '"' + data("case", result.id) +
                     data("revision", std::to_string(result.revision)) +
                     data("verdict", to_string(worst(result))) + data("area", result.area) +
                     data("level", to_string(result.level)) + data("role", to_string(result.role)) +
                     data("standing", to_string(stands)) + ">";
  html += "<th scope=\"row\" class=\"case\">" + escaped(result.id) + standing_tag(stands) + "</th><td>" +
          std::string{to_string(result.level)} + "</td><td>" + std::to_string(result.revision) + "</td><td>" +
          badge(result.behaviour) + "</td><td>" + (result.close ? badge(*result.close) : "not judged") +
          "</td><td class=\"time\">" + duration_text(result.milliseconds) + "</td></tr>\n";
  return html + "<tr><td colspan=\"6\" class=\"more\">" + case_details(result) + "</td></tr>\n";
}

using Areas = std::map<std::string, std::vector<const CaseResult*>>;

std::string matrix(const RunReport& report, const Areas& areas) {
  std::string html =
      "<table id=\"matrix\"><thead><tr><th scope=\"col\">Case</th><th scope=\"col\">Level</th><th "
      "scope=\"col\">Revision</th>"
      "<th scope=\"col\">Behaviour</th><th scope=\"col\">Close</th><th "
      "scope=\"col\">Time</th></tr></thead>\n";
  for (const auto& [area, cases] : areas) {
    html +=
        "<tbody>\n<tr><th class=\"area\" colspan=\"6\" scope=\"rowgroup\">" + escaped(area) + "</th></tr>\n";
    for (const CaseResult* each : cases) html += case_rows(report, *each);
    html += "</tbody>\n";
  }
  return html + "</table>\n";
}

std::string map_cell(const CaseResult& result) {
  const Verdict verdict = worst(result);
  const std::string label = escaped(result.id) + " revision " + std::to_string(result.revision) + ": " +
                            std::string{to_string(verdict)};
  return "<a class=\"cell " + class_of(verdict) + "\" href=\"" + fragment_of(result) + "\" title=\"" + label +
         "\" aria-label=\"" + label + "\">" + std::string{sign_of(verdict)} + "</a>";
}

std::string map_of_cells(const RunReport& report, const Areas& areas) {
  std::string html =
      "<section aria-labelledby=\"map-title\"><h2 id=\"map-title\">At a glance</h2><div class=\"map\">\n";
  for (const auto& [area, cases] : areas) {
    std::size_t passed = 0;
    html += "<div>" + escaped(area) + "</div><div class=\"cells\">";
    for (const CaseResult* each : cases) {
      if (standing(report, *each) == Standing::Passed) ++passed;
      html += map_cell(*each);
    }
    html += "</div><div class=\"count\">" + std::to_string(passed) + "/" + std::to_string(cases.size()) +
            "</div>\n";
  }
  return html + "</div></section>\n";
}

std::string summary_section(const RunReport& report) {
  const auto verdicts = count_verdicts(report);
  std::string bar;
  std::string chips;
  for (std::size_t i = 0; i < kVerdicts; ++i) {
    if (verdicts[i] == 0) continue;
    const auto verdict = static_cast<Verdict>(i);
    const std::string number = std::to_string(verdicts[i]);
    bar += "<span class=\"" + class_of(verdict) + "\" style=\"flex-grow:" + number + "\"></span>";
    chips += "<button type=\"button\" class=\"chip " + class_of(verdict) +
             "\" data-filter=\"verdict:" + std::string{to_string(verdict)} +
             "\" aria-pressed=\"false\"><span aria-hidden=\"true\">" + std::string{sign_of(verdict)} +
             "</span> " + number + ' ' + std::string{to_string(verdict)} + "</button>\n";
  }
  return "<section id=\"summary\" aria-label=\"Counts by verdict\"><div class=\"bar\" aria-hidden=\"true\">" +
         bar + "</div><div class=\"chips\">\n" + chips + "</div></section>\n";
}

std::string failures_section(const RunReport& report) {
  std::string items;
  for (const CaseResult* each : in_order(report)) {
    if (standing(report, *each) != Standing::Failed) continue;
    items += "<li>" + badge(worst(*each)) + " <a href=\"" + fragment_of(*each) + "\">" +
             escaped(case_key(*each)) + "</a> " + escaped(each->says) + "</li>\n";
  }
  for (const std::string& each : report.stale)
    items += "<li>expected failure that no longer holds: " + escaped(each) + "</li>\n";
  if (items.empty()) return {};
  return "<section id=\"failures\"><h2>What counts against it</h2><ul>\n" + items + "</ul></section>\n";
}

std::string top(const RunReport& report) {
  const int code = exit_code(report);
  const std::string failed = std::to_string(count_standing(report, Standing::Failed));
  const std::string total = std::to_string(report.cases.size());
  std::string verdict = "<div class=\"result v-ok\">✓ Passed</div>";
  if (code == 1) verdict = "<div class=\"result v-failed\">✗ Failed: " + failed + " of " + total + "</div>";
  if (code == 3)
    verdict = "<div class=\"result v-harness-error\">? Not judged: " + failed + " of " + total + "</div>";
  std::string revisions;
  for (const int each : report.revisions) revisions += (revisions.empty() ? "" : ", ") + std::to_string(each);
  const std::string expected = std::to_string(count_standing(report, Standing::Expected));
  return "<header class=\"top\">" + verdict + "<div><h1>" + escaped(report.title) +
         "</h1><p class=\"facts\"><code>" + escaped(report.subject) + "</code><br>" +
         escaped(report.started_at) + " · " + total + " cases in " + duration_text(report.milliseconds) +
         " · revision " + revisions + (report.strict ? " · strict" : "") + " · " + expected +
         " expected failures · windlass-conformance " + escaped(report.tool_version) +
         "</p></div></header>\n";
}

}  // namespace

std::string report_html(const RunReport& report) {
  Areas areas;
  for (const CaseResult* each : in_order(report)) areas[each->area].push_back(each);
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'sha256-" +
      std::string{report_script_hash()} + "'; base-uri 'none'; form-action 'none'\">\n" +
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
      escaped(report.title) + "</title>\n<style>" + std::string{report_style()} +
      "</style></head>\n<body><main>\n";
  html += top(report) + summary_section(report) + failures_section(report) + map_of_cells(report, areas);
  html +=
      "<section aria-label=\"Cases\"><div class=\"find\"><label for=\"filter\">Filter</label><input "
      "id=\"filter\" type=\"search\" "
      "autocomplete=\"off\" placeholder=\"HSK-1, handshake, failed, level:should, -verdict:ok\">"
      "<button type=\"button\" data-filter=\"-verdict:OK\" aria-pressed=\"false\">not OK</button>"
      "<button type=\"button\" id=\"open-all\">open shown</button><button type=\"button\" "
      "id=\"close-all\">close</button>"
      "<span id=\"shown\" class=\"count\" role=\"status\"></span></div>\n";
  html += matrix(report, areas) + "</section>\n</main>\n<script>" + std::string{report_script()} +
          "</script>\n</body></html>\n";
  return html;
}

}  // namespace windlass::conformance
