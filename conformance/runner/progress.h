// What people see while cases run. On a terminal: one line that is drawn again and again and gone at the end.
// Elsewhere, so that logs stay short: a line for each failure and no more.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/runner/report.h"

namespace windlass::conformance {

struct ProgressState {
  std::size_t done = 0;
  std::size_t total = 0;
  std::size_t failures = 0;
  std::vector<std::string> running;  // case_key, oldest first
  double milliseconds = 0;
};

// "[#########-----------] 45/120  2 failed  12.30 s  HSK-1/register-first@2 +3", at most `columns` wide.
std::string progress_line(const ProgressState& state, std::size_t columns);

// "FAILED HSK-1/register-first@2: the sentence", for a log.
std::string failure_line(const CaseResult& result);

// Cases may run side by side, so each call may come from any thread.
class Progress final {
 public:
  // `write` takes bytes as they are; `columns` is 0 where there is no terminal.
  Progress(std::function<void(std::string_view)> write, std::size_t columns, std::size_t total);
  // On the standard error output of this process.
  static Progress on_stderr(std::size_t total) { return {write_stderr, stderr_columns(), total}; }

  void handle_started(std::string_view id, int revision, double elapsed_milliseconds);
  void handle_finished(const CaseResult& result, Standing standing, double elapsed_milliseconds);
  // Now and then, so that the clock moves while a case takes its time.
  void handle_tick(double elapsed_milliseconds);
  // Takes the line away. Nothing is drawn after it.
  void finish();

 private:
  static void write_stderr(std::string_view bytes);
  static std::size_t stderr_columns();
  void draw(double elapsed_milliseconds);
  void erase();

  std::mutex mutex_;
  std::function<void(std::string_view)> write_;
  std::size_t columns_;
  ProgressState state_;
  bool is_finished_ = false;
};

}  // namespace windlass::conformance
