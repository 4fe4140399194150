#include "protocol/shell/json_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <chrono>
#include <cmath>

#include "protocol/base/utf8.h"

namespace windlass {
namespace {

constexpr std::array<std::string_view, 4> kLevelNames{"debug", "info", "warn", "error"};

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::Debug:
      return spdlog::level::debug;
    case LogLevel::Info:
      return spdlog::level::info;
    case LogLevel::Warn:
      return spdlog::level::warn;
    case LogLevel::Error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

// A line must stay one line of UTF-8 whatever a peer put into its names.
void append_quoted(std::string& out, std::string_view text) {
  const bool is_text = is_utf8(text);
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !is_text)) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_field(std::string& out, const LogField& field) {
  if (const auto* text = std::get_if<std::string_view>(&field.value); text != nullptr && text->empty())
    return;
  out += ',';
  append_quoted(out, field.name);
  out += ':';
  if (const auto* text = std::get_if<std::string_view>(&field.value)) {
    append_quoted(out, *text);
  } else if (const auto* whole = std::get_if<std::uint64_t>(&field.value)) {
    out += std::to_string(*whole);
  } else if (const auto* number = std::get_if<double>(&field.value)) {
    out += std::isfinite(*number) ? fmt::format("{}", *number) : "null";
  } else {
    out += std::get<bool>(field.value) ? "true" : "false";
  }
}

}  // namespace

struct JsonLog::Sink {
  spdlog::logger logger;
};

std::optional<LogLevel> log_level_from(std::string_view text) {
  for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
    if (kLevelNames[i] == text) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

Result<std::unique_ptr<JsonLog>> JsonLog::open(const LogOptions& options) {
  try {
    spdlog::sink_ptr target;
    if (options.file.empty()) {
      target = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    } else {
      target = std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file);
    }
    auto sink = std::make_unique<Sink>(Sink{spdlog::logger{"windlass", target}});
    sink->logger.set_pattern("%v");
    sink->logger.set_level(spdlog_level(options.level));
    sink->logger.flush_on(spdlog::level::debug);
    return std::unique_ptr<JsonLog>{new JsonLog{std::move(sink)}};
  } catch (const spdlog::spdlog_ex& error) {
    return Error{ErrorCode::Internal, Blame::Local,
                 "The log file " + options.file + " cannot be opened: " + error.what() + "."};
  }
}

JsonLog::JsonLog(std::unique_ptr<Sink> sink) : sink_(std::move(sink)) {}
JsonLog::~JsonLog() = default;

bool JsonLog::takes(LogLevel level) const {
  return sink_->logger.should_log(spdlog_level(level));
}

void JsonLog::set_common(LogFields fields) {
  common_.clear();
  for (const LogField& field : fields) append_field(common_, field);
}

void JsonLog::write(LogLevel level, std::string_view event, LogFields fields) {
  if (!takes(level)) return;
  const auto now = std::chrono::system_clock::now();
  const auto parts =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::string line = fmt::format(R"({{"ts":"{:%Y-%m-%dT%H:%M:%S}.{:03}Z","level":"{}","event":)",
                                 fmt::gmtime(std::chrono::system_clock::to_time_t(now)), parts,
                                 kLevelNames[static_cast<std::size_t>(level)]);
  append_quoted(line, event);
  line += common_;
  for (const LogField& field : fields) append_field(line, field);
  line += '}';
  sink_->logger.log(spdlog_level(level), spdlog::string_view_t{line});
}

}  // namespace windlass
