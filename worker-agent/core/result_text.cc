#include "worker-agent/core/result_text.h"

#include <algorithm>

#include "protocol/base/clip.h"
#include "protocol/base/utf8.h"
#include "protocol/codec/json_writer.h"

namespace windlass::agent {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

std::string_view code_of(RunEnd end) {
  switch (end) {
    case RunEnd::Exited:
    case RunEnd::Signalled:
      return {};
    case RunEnd::TimedOut:
      return to_string(ErrorCode::Timeout);
    case RunEnd::Stopped:
      return to_string(ErrorCode::SessionDraining);
    case RunEnd::NotStarted:
    case RunEnd::Interrupted:
      return to_string(ErrorCode::Internal);
  }
  return {};
}

std::string_view reason_of(const RunOutcome& outcome) {
  switch (outcome.end) {
    case RunEnd::Exited:
      return {};
    case RunEnd::Signalled:
      return "the program was ended by a signal";
    case RunEnd::TimedOut:
      return "the program ran longer than its timeout and was killed";
    case RunEnd::Stopped:
      return "the agent was told to stop and killed the program";
    case RunEnd::NotStarted:
      return outcome.reason;
    case RunEnd::Interrupted:
      return "the machine or the agent went down while the program ran: it may have taken effect or not";
  }
  return {};
}

std::string write(const RunOutcome& outcome, std::string_view out, std::string_view err, bool is_cut) {
  std::string text;
  codec::JsonWriter json{text};
  json.begin();
  json.boolean("ok", outcome.end == RunEnd::Exited && outcome.code == 0);
  json.text_if_any("code", code_of(outcome.end));
  json.text_if_any("reason", clip(mended(reason_of(outcome)), 1024));
  if (outcome.end == RunEnd::Exited) json.integer("exit_code", static_cast<std::uint64_t>(outcome.code));
  if (outcome.end == RunEnd::Signalled) json.integer("signal", static_cast<std::uint64_t>(outcome.code));
  if (outcome.end != RunEnd::NotStarted && outcome.end != RunEnd::Interrupted) {
    json.text("stdout", out);
    json.text("stderr", err);
    json.boolean("truncated", is_cut);
    json.integer("duration_ms", static_cast<std::uint64_t>(outcome.took / milliseconds{1}));
  }
  json.end();
  json.finish();
  return text;
}

}  // namespace

std::string mended(std::string_view text) {
  if (is_utf8(text)) return std::string{text};
  std::string out;
  while (!text.empty()) {
    // The longest character that is right here; none: this byte is wrong.
    std::size_t length = 1;
    while (length <= std::min<std::size_t>(4, text.size()) && !is_utf8(text.substr(0, length))) ++length;
    const bool is_right = length <= std::min<std::size_t>(4, text.size());
    out += is_right ? text.substr(0, length) : kReplacement;
    text.remove_prefix(is_right ? length : 1);
  }
  return out;
}

std::string refusal_text(ErrorCode code, std::string_view reason) {
  std::string text;
  codec::JsonWriter json{text};
  json.begin();
  json.boolean("ok", false);
  json.text("code", to_string(code));
  json.text("reason", sayable(reason, 1024));
  json.end();
  json.finish();
  return text;
}

std::string_view outcome_code(const RunOutcome& outcome) {
  return code_of(outcome.end);
}

std::string outcome_text(const RunOutcome& outcome, std::size_t bytes_max) {
  const std::string out = mended(outcome.standard_output);
  const std::string err = mended(outcome.standard_error);
  std::string text = write(outcome, out, err, outcome.is_cut);
  // An escape takes up to six bytes, so a sixth of the room always fits.
  const std::size_t room = bytes_max > 4096 ? (bytes_max - 2048) / 12 : 64;
  if (text.size() > bytes_max) text = write(outcome, clip(out, room), clip(err, room), true);
  return text;
}

}  // namespace windlass::agent
