#include "conformance/runner/progress.h"

#include <gtest/gtest.h>

#include "conformance/runner/report_text.h"
#include "conformance/runner/summary.h"
#include "tests/unit/conformance/runner/sample_report.h"

namespace windlass::conformance {
namespace {

bool shows(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(ProgressLine, ShowsHowFarTheRunIs) {
  const ProgressState state{60, 120, 2, {"HSK-1/first@2", "HSK-2/second@1", "HSK-3/third@2"}, 12'300};
  EXPECT_EQ(progress_line(state, 200),
            "[############------------] 60/120  2 failed  12.30 s  HSK-1/first@2 +2");
  EXPECT_EQ(progress_line({}, 200), "[########################] 0/0  0 failed  0 ms");
}

TEST(ProgressLine, IsNeverWiderThanTheTerminal) {
  const ProgressState state{1, 3, 0, {std::string(500, 'x')}, 0};
  for (std::size_t columns = 0; columns < 100; ++columns) {
    EXPECT_LE(text_columns(progress_line(state, columns)), columns);
  }
}

struct Screen {
  std::string written;
  Progress progress;
  Screen(std::size_t columns, std::size_t total)
      : progress([this](std::string_view bytes) { written += bytes; }, columns, total) {}
};

TEST(Progress, OnATerminalDrawsOneLineAgainAndTakesItAway) {
  Screen screen{80, 2};
  screen.progress.handle_started("HSK-1/first", 2, 0);
  EXPECT_EQ(screen.written, "\r\x1B[K[------------------------] 0/2  0 failed  0 ms  HSK-1/first@2");
  screen.written.clear();
  screen.progress.handle_tick(500);
  EXPECT_EQ(screen.written, "\r\x1B[K[------------------------] 0/2  0 failed  500 ms  HSK-1/first@2");
  screen.written.clear();
  screen.progress.handle_finished(sample_case("HSK-1/first", Verdict::Ok), Standing::Passed, 700);
  EXPECT_EQ(screen.written, "\r\x1B[K[############------------] 1/2  0 failed  700 ms");
  screen.written.clear();
  screen.progress.finish();
  EXPECT_EQ(screen.written, "\r\x1B[K");
  screen.progress.handle_tick(900);
  screen.progress.finish();
  EXPECT_EQ(screen.written, "\r\x1B[K");
}

TEST(Progress, OnAPipeSaysFailuresAndNothingElse) {
  Screen screen{0, 3};
  screen.progress.handle_started("HSK-1/first", 2, 0);
  screen.progress.handle_finished(sample_case("HSK-1/first", Verdict::Ok), Standing::Passed, 1);
  screen.progress.handle_finished(sample_case("HSK-3/third", Verdict::Failed), Standing::Expected, 1);
  EXPECT_EQ(screen.written, "");
  screen.progress.handle_finished(sample_case("HSK-2/second", Verdict::WrongCode), Standing::Failed, 2);
  screen.progress.finish();
  EXPECT_EQ(screen.written, "WRONG-CODE HSK-2/second@2: A register before the handshake is refused.\n");
}

TEST(Summary, CountsByAreaAndThenNamesEveryFailure) {
  EXPECT_EQ(summary_text(sample_report()),
            "area       cases  passed  failed  tolerated  expected  non-strict\n"
            "handshake      5       2       1          1         1           1\n"
            "all            5       2       1          1         1           1\n"
            "\n"
            "failures:\n"
            "  FAILED HSK-2/second@2\n"
            "    A register before the handshake is refused.\n"
            "    expected: {\"type\": \"control.reset\"}\n"
            "    came:     {\"type\": \"control.ack\"}\n"
            "    look:     windlass-conformance ... --id HSK-2/second --revision 2 --verbose\n"
            "\n"
            "failures of SHOULD and MAY, which do not count here:\n"
            "  WRONG-CODE HSK-3/should@2\n"
            "    A register before the handshake is refused.\n"
            "    came:     {\"type\": \"control.ack\"}\n"
            "\n"
            "expected failures:\n"
            "  UNIMPLEMENTED HSK-4/known@2\n"
            "    A register before the handshake is refused.\n"
            "    came:     {\"type\": \"control.ack\"}\n"
            "\n"
            "NON-STRICT, which --strict would refuse:\n"
            "  NON-STRICT HSK-1/first@1\n"
            "    A register before the handshake is refused.\n"
            "    came:     {\"type\": \"control.ack\"}\n"
            "\n"
            "FAILED: 1 of 5 cases in 1 min 5 s\n");
}

TEST(Summary, EndsWithHowTheRunEnds) {
  RunReport report = sample_report();
  report.cases = {sample_case("HSK-1/first", Verdict::Ok)};
  report.expected_failures.clear();
  EXPECT_TRUE(summary_text(report).ends_with("\n\nPASSED: 1 cases in 1 min 5 s\n"));
  report.stale = {"known.txt, line 3: gone"};
  EXPECT_TRUE(
      shows(summary_text(report), "\nexpected failures that no longer hold:\n  known.txt, line 3: gone\n"));
  EXPECT_TRUE(
      summary_text(report).ends_with("FAILED: 0 of 1 cases in 1 min 5 s, 1 stale expected failures\n"));
  report.stale.clear();
  report.cases[0].behaviour = Verdict::HarnessError;
  EXPECT_TRUE(shows(summary_text(report), "NOT JUDGED: 1 cases could not be played"));
}

TEST(Summary, HostileTextCannotSteerTheTerminal) {
  RunReport report = sample_report();
  for (CaseResult& each : report.cases) each.says = each.came = each.expected = each.area = hostile_text();
  for (const char c : summary_text(report)) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20U || c == '\n');
  EXPECT_FALSE(shows(failure_line(report.cases[0]), "\x1B"));
}

}  // namespace
}  // namespace windlass::conformance
