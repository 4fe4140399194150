#include "worker-agent/core/run_record.h"

#include <array>
#include <charconv>
#include <optional>

namespace windlass::agent {
namespace {

constexpr std::string_view kEnd = "\nend\n";

std::optional<std::uint64_t> take_number(std::string_view& text, char after) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data() + text.size() || *end != after) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return value;
}

}  // namespace

std::string encode_outcome(const RunOutcome& outcome) {
  std::string text;
  for (const std::uint64_t number :
       {static_cast<std::uint64_t>(outcome.end), static_cast<std::uint64_t>(outcome.code),
        std::uint64_t{outcome.is_cut}, static_cast<std::uint64_t>(outcome.took.count()),
        std::uint64_t{outcome.standard_output.size()}, std::uint64_t{outcome.standard_error.size()},
        std::uint64_t{outcome.reason.size()}}) {
    text += std::to_string(number) + " ";
  }
  text.back() = '\n';
  text += outcome.standard_output;
  text += outcome.standard_error;
  text += outcome.reason;
  text += kEnd;
  return text;
}

std::variant<RunProgress, RunOutcome> parse_run_record(BytesView record) {
  if (record.empty()) return RunProgress::NotBegun;
  // A beginning of the mark is a torn mark: it was not synced, so the program was not started.
  if (record.size() < kBegun.size() && kBegun.starts_with(record)) return RunProgress::NotBegun;
  if (!record.starts_with(kBegun)) return RunProgress::Begun;
  record.remove_prefix(kBegun.size());
  std::array<std::uint64_t, 7> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto number = take_number(record, i + 1 < numbers.size() ? ' ' : '\n');
    if (!number) return RunProgress::Begun;
    numbers[i] = *number;
  }
  const auto [end, code, is_cut, took, output, error, reason] = numbers;
  for (const std::uint64_t size : {output, error, reason}) {
    if (size > record.size()) return RunProgress::Begun;
  }
  if (output + error + reason + kEnd.size() != record.size() || !record.ends_with(kEnd))
    return RunProgress::Begun;
  if (end > static_cast<std::uint64_t>(RunEnd::Interrupted) || code > 255) return RunProgress::Begun;
  return RunOutcome{.end = static_cast<RunEnd>(end),
                    .code = static_cast<int>(code),
                    .standard_output = std::string{record.substr(0, output)},
                    .standard_error = std::string{record.substr(output, error)},
                    .is_cut = is_cut != 0,
                    .took = Duration{static_cast<Duration::rep>(took)},
                    .reason = std::string{record.substr(output + error, reason)}};
}

}  // namespace windlass::agent
