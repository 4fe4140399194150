#include "conformance/runner/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "conformance/runner/report_text.h"

namespace windlass::conformance {
namespace {

constexpr std::size_t kBarColumns = 24;
constexpr std::size_t kFailureColumns = 400;
constexpr std::size_t kTerminalColumns = 80;  // of one that does not say
constexpr std::string_view kEraseLine = "\r\x1B[K";

std::string progress_bar(std::size_t done, std::size_t total) {
  const std::size_t filled = total == 0 ? kBarColumns : std::min(done, total) * kBarColumns / total;
  return '[' + std::string(filled, '#') + std::string(kBarColumns - filled, '-') + ']';
}

}  // namespace

std::string progress_line(const ProgressState& state, std::size_t columns) {
  std::string line = progress_bar(state.done, state.total) + ' ' + std::to_string(state.done) + '/' +
                     std::to_string(state.total) + "  " + std::to_string(state.failures) + " failed  " +
                     duration_text(state.milliseconds);
  if (!state.running.empty()) {
    line += "  " + state.running.front();
    if (state.running.size() > 1) line += " +" + std::to_string(state.running.size() - 1);
  }
  return one_line(line, columns);
}

std::string failure_line(const CaseResult& result) {
  return std::string{to_string(worst(result))} + ' ' + case_key(result) + ": " +
         one_line(result.says, kFailureColumns);
}

Progress::Progress(std::function<void(std::string_view)> write, std::size_t columns, std::size_t total)
    : write_(std::move(write)), columns_(columns) {
  state_.total = total;
}

void Progress::handle_started(std::string_view id, int revision, double elapsed_milliseconds) {
  const std::lock_guard lock{mutex_};
  state_.running.push_back(case_key(id, revision));
  draw(elapsed_milliseconds);
}

void Progress::handle_finished(const CaseResult& result, Standing standing, double elapsed_milliseconds) {
  const std::lock_guard lock{mutex_};
  ++state_.done;
  if (const auto found = std::ranges::find(state_.running, case_key(result)); found != state_.running.end()) {
    state_.running.erase(found);
  }
  if (standing == Standing::Failed && !is_finished_) {
    ++state_.failures;
    erase();
    write_(failure_line(result) + '\n');
  }
  draw(elapsed_milliseconds);
}

void Progress::handle_tick(double elapsed_milliseconds) {
  const std::lock_guard lock{mutex_};
  draw(elapsed_milliseconds);
}

void Progress::finish() {
  const std::lock_guard lock{mutex_};
  if (!is_finished_) erase();
  is_finished_ = true;
}

void Progress::draw(double elapsed_milliseconds) {
  if (columns_ == 0 || is_finished_) return;
  state_.milliseconds = elapsed_milliseconds;
  // A line as wide as the terminal would wrap on some of them.
  write_(std::string{kEraseLine} + progress_line(state_, columns_ - 1));
}

void Progress::erase() {
  if (columns_ > 0) write_(kEraseLine);
}

void Progress::write_stderr(std::string_view bytes) {
  std::fwrite(bytes.data(), 1, bytes.size(), stderr);
  std::fflush(stderr);
}

std::size_t Progress::stderr_columns() {
  if (isatty(STDERR_FILENO) == 0) return 0;
  winsize size{};
  const bool told = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return told ? size.ws_col : kTerminalColumns;
}

}  // namespace windlass::conformance
