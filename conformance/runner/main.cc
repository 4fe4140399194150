// windlass-conformance: judges any implementation of the session protocol, from outside.
#include <signal.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "conformance/runner/case.h"
#include "conformance/runner/embedded.h"
#include "conformance/runner/expected_failures.h"
#include "conformance/runner/options.h"
#include "conformance/runner/probe.h"
#include "conformance/runner/progress.h"
#include "conformance/runner/report.h"
#include "conformance/runner/report_text.h"
#include "conformance/runner/subject.h"
#include "conformance/runner/suite.h"
#include "conformance/runner/summary.h"
#include "protocol/base/version.h"

namespace windlass::conformance {
namespace {

constexpr int kMisuse = 2;
constexpr int kHarness = 3;

int complain(const Error& error, int code) {
  std::fprintf(stderr, "windlass-conformance: %s\n", error.reason.c_str());
  return code;
}

CaseTexts embedded_below(const std::string& folder) {
  CaseTexts texts;
  for (const auto& [path, text] : embedded_files()) {
    if (path.starts_with(folder)) texts[path.substr(folder.size())] = text;
  }
  return texts;
}

CaseTexts texts_in(const std::filesystem::path& folder) {
  CaseTexts texts;
  for (const auto& entry : std::filesystem::recursive_directory_iterator{folder}) {
    if (entry.path().extension() != ".json") continue;
    const auto text = read_text_file(entry.path());
    if (text) texts[std::filesystem::relative(entry.path(), folder)] = *text;
  }
  return texts;
}

Result<std::vector<Case>> load_cases(const Options& options) {
  // A test of the build has checked those that are built in.
  if (options.cases_folder.empty()) return read_checked_cases(embedded_below("conformance/cases/"));
  const std::string schema = embedded_files().at("conformance/case.schema.json");

  if (!std::filesystem::is_directory(options.cases_folder)) {
    return Error{ErrorCode::Internal, Blame::Local,
                 "there is no folder " + options.cases_folder + "; give --cases one"};
  }
  return read_cases(texts_in(options.cases_folder), schema);
}

bool is_chosen(const Case& each, const Options& options) {
  const auto any = [](const std::vector<std::string>& wanted, const auto& fits) {
    return wanted.empty() || std::any_of(wanted.begin(), wanted.end(), fits);
  };
  const std::string role = !options.url.empty()       ? "scheduler"
                           : !options.command.empty() ? "worker"
                                                      : options.role;
  return (role.empty() || role == to_string(each.role)) &&
         any(options.ids, [&](const std::string& id) { return each.id.starts_with(id); }) &&
         any(options.areas, [&](const std::string& area) { return each.area == area; }) &&
         any(options.levels, [&](const std::string& level) { return level == to_string(each.level); });
}

std::vector<PlannedCase> choose(const std::vector<Case>& cases, const Options& options) {
  std::vector<PlannedCase> chosen;
  for (const Case& each : cases) {
    if (!is_chosen(each, options)) continue;
    for (const int revision : each.revisions) {
      if (options.revision == 0 || options.revision == revision) chosen.push_back({&each, revision});
    }
  }
  return chosen;
}

int list(const std::vector<PlannedCase>& chosen) {
  for (const PlannedCase& each : chosen) {
    std::printf("%-52s %-6s %-9s r%d %-14s %s\n", each.played->id.c_str(),
                to_string(each.played->level).data(), to_string(each.played->role).data(), each.revision,
                each.played->area.c_str(), each.played->says.c_str());
  }
  return 0;
}

bool write_file(const std::string& path, const std::string& text) {
  if (path.empty()) return true;
  std::ofstream stream{path, std::ios::binary};
  stream << text;
  stream.close();
  if (stream) return true;
  std::fprintf(stderr, "windlass-conformance: the report %s cannot be written\n", path.c_str());
  return false;
}

bool write_reports(const RunReport& report, const Options& options) {
  return write_file(options.json_file, options.json_file.empty() ? "" : report_json(report)) &&
         write_file(options.junit_file, options.junit_file.empty() ? "" : report_junit(report)) &&
         write_file(options.html_file, options.html_file.empty() ? "" : report_html(report));
}

int render(const Options& options) {
  const auto text = read_text_file(options.render_file);
  if (!text) return complain(text.error(), kMisuse);
  const auto report = report_from_json(*text);
  if (!report) return complain(report.error(), kMisuse);
  return write_reports(*report, options) ? 0 : kHarness;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

void print_wire(const CaseResult& result) {
  std::printf("\n%s, revision %d: the wire\n", result.id.c_str(), result.revision);
  for (const WireEvent& event : result.wire) {
    std::printf("%9.1f ms  %-8s %-6s %s\n", event.milliseconds, std::string{to_string(event.kind)}.c_str(),
                event.connection.c_str(), visible(event.text).c_str());
  }
}

// Removed at the end, whatever it holds.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(std::filesystem::temp_directory_path() / "windlass-conformance-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

int judge(const Options& options, const std::vector<Case>& cases, const Setup& setup) {
  const std::vector<PlannedCase> chosen = choose(cases, options);
  if (chosen.empty()) {
    std::fprintf(stderr, "windlass-conformance: no case is chosen; see --list\n");
    return kMisuse;
  }
  std::optional<ExpectedFailures> expected;
  if (!options.expected_failures_file.empty()) {
    const auto text = read_text_file(options.expected_failures_file);
    if (!text) return complain(text.error(), kMisuse);
    auto parsed = ExpectedFailures::parse(*text, options.expected_failures_file);
    if (!parsed) return complain(parsed.error(), kMisuse);
    expected = std::move(*parsed);
  }
  RunReport report;
  report.title = setup.role == Role::Scheduler ? "A scheduler" : "A worker";
  report.subject = options.url.empty() ? options.command : options.url;
  report.tool_version = std::string{version()};
  report.started_at = utc_now();
  report.strict = options.strict;
  report.revisions = options.revision == 0 ? std::vector<int>{1, 2} : std::vector<int>{options.revision};
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  };
  Progress progress = Progress::on_stderr(chosen.size());
  const std::jthread ticker{[&](const std::stop_token& ended) {
    while (!ended.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds{200});
      progress.handle_tick(elapsed());
    }
  }};
  report.cases = run_suite(setup, chosen,
                           {.jobs = options.jobs,
                            .on_started =
                                [&](const PlannedCase& each) {
                                  progress.handle_started(each.played->id, each.revision, elapsed());
                                },
                            .on_finished =
                                [&](const CaseResult& result) {
                                  RunReport alone;
                                  alone.strict = options.strict;
                                  if (expected && expected->contains(result.id, result.revision))
                                    alone.expected_failures = {case_key(result)};
                                  progress.handle_finished(result, standing(alone, result), elapsed());
                                }});
  progress.finish();
  report.milliseconds = elapsed();
  if (expected) {
    std::vector<ExpectedFailures::Known> known;
    for (const Case& each : cases) {
      for (const int revision : each.revisions) known.push_back({each.id, revision});
    }
    expected->apply(report, known);
  }
  if (options.verbose) {
    for (const CaseResult& result : report.cases) {
      if (!passes(result, options.strict)) print_wire(result);
    }
  }
  std::fputs(summary_text(report).c_str(), stdout);
  return write_reports(report, options) ? exit_code(report) : kHarness;
}

int run(const Options& options) {
  if (options.task == Options::Task::Render) return render(options);
  const auto cases = load_cases(options);
  if (!cases) return complain(cases.error(), kHarness);
  if (options.task == Options::Task::List) return list(choose(*cases, options));
  const auto schemas = WireSchemas::parse(embedded_below("schema/messages/"));
  if (!schemas) return complain(schemas.error(), kHarness);
  const TemporaryFolder folder;
  const auto setup = make_setup(options, **schemas, folder.path());
  if (!setup) return complain(setup.error(), kMisuse);
  if (options.task == Options::Task::Probe) return probe(*setup, options.as_json);
  if (setup->role == Role::Worker && !options.skips_probe) {
    if (const auto probed = probe_worker(*setup, folder.path()); !probed)
      return complain(probed.error(), kHarness);
  }
  return judge(options, *cases, *setup);
}

}  // namespace
}  // namespace windlass::conformance

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  int exit_code = 0;
  const auto options = windlass::conformance::parse_options(argc, argv, exit_code);
  return options ? windlass::conformance::run(*options) : exit_code;
}
