#include "conformance/runner/dialect.h"

#include <charconv>
#include <string>

namespace windlass::conformance {
namespace {

// Positions count from 0 in revision 2, where none is absent, and from 1 in revision 1, where none is 0.
void raise_position(json::object& payload, const char* name) {
  json::value& value = payload[name];
  value = value.is_number() ? value.to_number<std::int64_t>() + 1 : std::int64_t{0};
}

void lower_position(json::object& payload, const char* name) {
  const auto* const value = payload.if_contains(name);
  if (value == nullptr) return;
  const std::int64_t position = value->is_number() ? value->to_number<std::int64_t>() : 0;
  if (position <= 0) {
    payload.erase(name);
  } else {
    payload[name] = position - 1;
  }
}

void erase_all(json::object& payload, std::initializer_list<const char*> names) {
  for (const char* const name : names) payload.erase(name);
}

void ack_to_wire(json::object& payload) {
  const bool has_state = payload.contains("recv_window") || payload.contains("ack_seq");
  if (has_state) raise_position(payload, "ack_seq");
  erase_all(payload, {"recv_window_bytes", "dup"});
  if (const auto* const window = payload.if_contains("recv_window");
      window != nullptr && window->is_number() && window->to_number<std::int64_t>() > 64) {
    payload["recv_window"] = 64;
  }
  if (const auto* const bits = payload.if_contains("ack_bitmap"); bits != nullptr && bits->is_string()) {
    const std::string digits{bits->as_string()};
    std::uint64_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
    payload["ack_bitmap"] = number;
  } else if (has_state && bits == nullptr) {
    payload["ack_bitmap"] = 0;
  }
}

void ack_from_wire(json::object& payload) {
  lower_position(payload, "ack_seq");
  const auto* const bits = payload.if_contains("ack_bitmap");
  if (bits == nullptr) return;
  const auto number = bits->is_number() ? bits->to_number<std::uint64_t>() : std::uint64_t{0};
  if (number == 0) {
    payload.erase("ack_bitmap");
    return;
  }
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, number, 16).ptr;
  payload["ack_bitmap"] = std::string{digits, end};
}

std::string microseconds(const std::string& ts) {
  if (!ts.ends_with("Z")) return ts;
  std::string text = ts.substr(0, ts.size() - 1);
  const std::size_t dot = text.find('.');
  if (dot == std::string::npos) text += ".";
  while (text.size() - text.find('.') <= 6) text += '0';
  return text + "+00:00";
}

}  // namespace

json::object to_wire(json::object frame, int revision) {
  if (revision != 1) return frame;
  if (const auto* const seq = frame.if_contains("seq"); seq != nullptr && seq->is_number()) {
    const std::int64_t raised = seq->to_number<std::int64_t>() + 1;
    frame.erase("seq");
    frame["session_seq"] = raised;
  }
  if (const auto* const ts = frame.if_contains("ts"); ts != nullptr && ts->is_string()) {
    frame["ts"] = microseconds(std::string{ts->as_string()});
  }
  auto* const payload = frame.if_contains("payload");
  const auto* const type = frame.if_contains("type");
  if (payload == nullptr || !payload->is_object() || type == nullptr || !type->is_string()) return frame;
  json::object& body = payload->as_object();
  const std::string_view name = type->as_string();
  if (name == "control.ack") ack_to_wire(body);
  if (name == "control.resume") {
    raise_position(body, "last_seen_seq");
    erase_all(body, {"earliest_retained_seq", "recv_window", "recv_window_bytes"});
  }
  if (name == "control.session.accept") {
    erase_all(body, {"last_seen_seq", "earliest_retained_seq", "recv_window", "recv_window_bytes",
                     "heartbeat_interval_ms", "resume_ttl_ms", "frame_bytes_max"});
  }
  if (name == "control.drain") body.erase("phase");
  return frame;
}

json::object from_wire(json::object frame, int revision) {
  if (revision != 1) return frame;
  for (auto member = frame.begin(); member != frame.end();) {
    member = member->value().is_null() ? frame.erase(member) : member + 1;
  }
  frame.erase("seq");
  if (const auto* const seq = frame.if_contains("session_seq"); seq != nullptr && seq->is_number()) {
    const std::int64_t lowered = seq->to_number<std::int64_t>() - 1;
    frame.erase("session_seq");
    frame["seq"] = lowered;
  }
  if (auto* const ack = frame.if_contains("ack"); ack != nullptr && ack->is_object()) {
    auto& members = ack->as_object();
    for (const char* const name : {"for", "request"}) {
      const auto* const value = members.if_contains(name);
      if (value != nullptr && value->is_null()) members.erase(name);
    }
    if (members.empty()) frame.erase("ack");
  }
  auto* const payload = frame.if_contains("payload");
  const auto* const type = frame.if_contains("type");
  if (payload == nullptr || !payload->is_object() || type == nullptr || !type->is_string()) return frame;
  json::object& body = payload->as_object();
  if (*type == "control.ack") {
    for (const char* const name : {"for", "info"}) {
      const auto* const value = body.if_contains(name);
      if (value != nullptr && value->is_null()) body.erase(name);
    }
    ack_from_wire(body);
  }
  if (*type == "control.resume") lower_position(body, "last_seen_seq");
  return frame;
}

}  // namespace windlass::conformance
