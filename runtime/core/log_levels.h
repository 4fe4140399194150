// Which of the lines that functions log are written: logging.logLevel of host.json, by category as in Azure.
// Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/messages.h"

namespace windlass::runtime {

// "Trace" to "Critical", and "None" for nothing at all; without regard to case.
std::optional<LogLevel> read_log_level(std::string_view text);

class LogLevels final {
 public:
  void set(std::string_view category, LogLevel least);
  // The longest category counts that is the line's own or one above it: "Function.greet" for a line of
  // "Function.greet.User". Where none is named "default" counts; without that everything is written.
  bool takes(const Log& log, std::string_view function) const;

 private:
  std::map<std::string, LogLevel, std::less<>> least_;  // by category in lower case
};

}  // namespace windlass::runtime
