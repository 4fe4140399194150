// Log lines as JSON objects, one per line, on standard error or in a file. Every line has ts, level and
// event; what else it has is given as fields. Fields are values of ours or names of things, never secrets:
// whoever holds a token does not pass it here.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "protocol/base/result.h"

namespace windlass {

enum class LogLevel : std::uint8_t { Debug, Info, Warn, Error };
std::optional<LogLevel> log_level_from(std::string_view text);  // debug, info, warn, error

// Usual names are tenant, sender.id, type, id, corr, code and seq. Empty text and no number are left out.
struct LogField {
  std::string_view name;
  std::variant<std::string_view, std::uint64_t, double, bool> value;

  LogField(std::string_view n, std::string_view v) : name(n), value(v) {}
  LogField(std::string_view n, const std::string& v) : name(n), value(std::string_view{v}) {}
  LogField(std::string_view n, const char* v) : name(n), value(std::string_view{v}) {}
  LogField(std::string_view n, std::uint64_t v) : name(n), value(v) {}
  LogField(std::string_view n, std::optional<std::uint64_t> v) : name(n) {
    if (v) value = *v;
  }
  LogField(std::string_view n, double v) : name(n), value(v) {}
  LogField(std::string_view n, bool v) : name(n), value(v) {}
};
using LogFields = std::initializer_list<LogField>;

struct LogOptions {
  LogLevel level = LogLevel::Info;
  std::string file = {};  // empty: standard error; lines are appended
};

// From any thread. Lines of one process never mix.
class JsonLog final {
 public:
  static Result<std::unique_ptr<JsonLog>> open(const LogOptions& options);
  ~JsonLog();
  JsonLog(const JsonLog&) = delete;
  JsonLog& operator=(const JsonLog&) = delete;

  // `event` is a sentence for people that does not vary; what varies goes into fields.
  void debug(std::string_view event, LogFields fields = {}) { write(LogLevel::Debug, event, fields); }
  void info(std::string_view event, LogFields fields = {}) { write(LogLevel::Info, event, fields); }
  void warn(std::string_view event, LogFields fields = {}) { write(LogLevel::Warn, event, fields); }
  void error(std::string_view event, LogFields fields = {}) { write(LogLevel::Error, event, fields); }
  void write(LogLevel level, std::string_view event, LogFields fields);
  bool takes(LogLevel level) const;

  // Fields that every line carries from now on. Before other threads log.
  void set_common(LogFields fields);

 private:
  struct Sink;
  explicit JsonLog(std::unique_ptr<Sink> sink);

  std::unique_ptr<Sink> sink_;
  std::string common_;
};

}  // namespace windlass
