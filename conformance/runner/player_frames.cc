// Frames out and in, and the duties that a runner does by itself.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <stdexcept>

#include "conformance/runner/dialect.h"
#include "conformance/runner/examples.h"
#include "conformance/runner/message.h"
#include "conformance/runner/player.h"

namespace windlass::conformance {
namespace {

constexpr std::size_t kInboxMax = 20'000;          // more than that is a flood
constexpr std::size_t kViolationsPerSession = 15;  // LIM-2: the one after 16 ends it
constexpr Duration kAnswerWithin = seconds{2};

std::string now_text() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t whole = std::chrono::system_clock::to_time_t(now);
  const auto fraction =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm utc{};
  ::gmtime_r(&whole, &utc);
  char text[40];
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  const std::string digits = std::to_string(1000 + fraction);
  return std::string{text, size} + "." + digits.substr(1) + "Z";
}

std::string length_prefix(std::size_t size) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes += static_cast<char>((size >> static_cast<unsigned>(shift)) & 0xffU);
  return bytes;
}

std::string text_of_member(const json::object& frame, const char* name) {
  const auto* const value = frame.if_contains(name);
  return value != nullptr && value->is_string() ? std::string{value->as_string()} : std::string{};
}

bool asks_for_ack(const json::object& frame) {
  const auto* const ack = frame.if_contains("ack");
  if (ack == nullptr || !ack->is_object()) return false;
  const auto* const request = ack->as_object().if_contains("request");
  return request != nullptr && *request == true;
}

std::string held_bits(std::uint64_t base, const std::set<std::uint64_t>& early) {
  // Bit i is frame base + i; hex digits from the highest.
  std::string digits;
  for (const std::uint64_t seq : early) {
    const std::size_t bit = seq - base;
    if (digits.size() <= bit / 4) digits.resize(bit / 4 + 1, 0);
    digits[bit / 4] = static_cast<char>(digits[bit / 4] | (1 << (bit % 4)));
  }
  for (char& digit : digits) digit = "0123456789abcdef"[static_cast<unsigned char>(digit)];
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace

Variables Player::variables() {
  Variables all = variables_;
  const std::string instance = text_of_member(variables_, "instance");
  all["handshake"] = {{"protocol", revision_},
                      {"auth", {{"mode", "token"}, {"token", setup_.token}}},
                      {"worker",
                       {{"worker_name", "conformance"},
                        {"worker_instance_id", instance},
                        {"version", "1"},
                        {"hostname", "conformance"}}}};
  all["register"] = {
      {"capabilities",
       {{"concurrency", {{"max_parallel", 8}}}, {"runtimes", {"none"}}, {"features", json::array{}}}},
      {"payload_types", json::array{}},
      {"packages", json::array{}},
      {"channels", json::array{}},
      {"manifests", json::array{}}};
  json::object resume{{"session_id", text_of_member(variables_, "session_id")},
                      {"session_token", text_of_member(variables_, "session_token")}};
  if (streams_.received_next > 0) resume["last_seen_seq"] = streams_.received_next - 1;
  resume["earliest_retained_seq"] = streams_.acked_next;
  resume["recv_window"] = streams_.window;
  resume["recv_window_bytes"] = streams_.window_bytes;
  all["resume"] = std::move(resume);
  return all;
}

// What the case leaves out; what it sets to null is left out of the frame.
json::object Player::filled(json::object frame) {
  const bool is_worker = case_.role == Role::Scheduler;
  const std::string type = text_of_member(frame, "type");
  json::object whole{{"type", type},
                     {"id", "r" + std::to_string(next_id_)},
                     {"ts", now_text()},
                     {"tenant", variables_.at("tenant")},
                     {"sender",
                      {{"role", is_worker ? "worker" : "scheduler"},
                       {"id", is_worker ? variables_.at("instance") : variables_.at("scheduler_id")}}}};
  ++next_id_;
  if (!type.starts_with("control.") && !frame.contains("seq")) whole["seq"] = streams_.next_seq++;
  for (json::key_value_pair& member : frame) {
    if (member.value().is_null()) {
      whole.erase(member.key());
    } else {
      whole[member.key()] = std::move(member.value());
    }
  }
  if (!frame.contains("payload")) whole["payload"] = json::object{};
  return whole;
}

std::string Player::send(Link& on, json::object frame, const std::string* bytes) {
  std::string id = text_of_member(frame, "id");
  variables_["last_id"] = id;
  if (const auto* const seq = frame.if_contains("seq");
      seq != nullptr && seq->is_number() && bytes == nullptr) {
    const auto number = seq->to_number<std::int64_t>();
    if (number >= 0 && !streams_.sent.contains(static_cast<std::uint64_t>(number)))
      streams_.sent[static_cast<std::uint64_t>(number)] = frame;
  }
  for (Fault& fault : faults_) {
    Variables ignored;
    const json::value whole = frame;
    if (fault.times == 0 || !fits(substitute(fault.match, variables()), &whole, ignored)) continue;
    --fault.times;
    switch (fault.kind) {
      case Fault::Kind::Drop:
        log(WireEvent::Kind::Note, on.name, "fault: dropped " + json::serialize(frame));
        return id;
      case Fault::Kind::Duplicate:
        transmit(on, frame, bytes);
        break;
      case Fault::Kind::Delay:
        if (!in_callback_) wait(fault.delay, [] { return false; });
        break;
      case Fault::Kind::Reorder:
        reordered_ = {on.name, frame};
        return id;
      case Fault::Kind::Corrupt: {
        std::string text = json::serialize(to_wire(frame, revision_));
        text[text.size() / 2] = '\x01';
        transmit_text(on, text, bytes);
        return id;
      }
    }
  }
  transmit(on, frame, bytes);
  if (const auto held = std::exchange(reordered_, std::nullopt))
    transmit(link(held->first), held->second, nullptr);
  return id;
}

void Player::transmit(Link& on, const json::object& frame, const std::string* bytes) {
  transmit_text(on, json::serialize(to_wire(frame, revision_)), bytes);
}

void Player::transmit_text(Link& on, const std::string& text, const std::string* bytes) {
  log(WireEvent::Kind::Sent, on.name,
      bytes == nullptr ? text : text + " + " + std::to_string(bytes->size()) + " bytes");
  if (!on.wire || on.wire->is_ended()) return;
  if (bytes == nullptr) return on.wire->send_message(text, MessageKind::Text);
  on.wire->send_message(length_prefix(text.size()) + text + *bytes, MessageKind::Binary);
}

// Each is answered with the code that it names, or not at all: then what follows it is answered first.
void Player::do_send_examples(Link& on, const json::array& beginnings) {
  const json::object own = filled({{"type", "control.nobody.knows"}});
  const auto examples = invalid_examples(beginnings, revision_, own.at("tenant"), own.at("sender"));
  if (examples.empty()) throw std::runtime_error{"no example is named so"};
  std::size_t in_session = 0;
  for (const InvalidExample& example : examples) {
    if (in_session++ == kViolationsPerSession) {
      if (case_.role == Role::Worker) throw std::runtime_error{"more examples than a session bears"};
      cut(on);
      open(on, {});
      in_session = 1;
    }
    begin_action();
    log(WireEvent::Kind::Sent, on.name, "schema/examples/invalid/" + example.name + ".json");
    if (on.wire && !on.wire->is_ended()) on.wire->send_message(example.message, example.kind);
    json::object answer{{"ok", false}, {"info", {{"$prefix", example.code}}}};
    if (!example.is_answered) {
      answer = {{"for", send(on, filled({{"type", "control.nobody.knows"}, {"ack", {{"request", true}}}}))}};
    }
    static_cast<void>(
        expect_frame(on, json::object{{"type", "control.ack"}, {"payload", answer}}, kAnswerWithin));
    check_violation();
  }
}

json::object Player::merged(json::object payload, const json::object& options, const char* name) const {
  json::value value = std::move(payload);
  if (const auto* const patch = options.if_contains(name)) merge(value, *patch);
  return value.as_object();
}

json::object Player::ack_state() {
  json::object state{{"ok", true}};
  if (streams_.received_next > 0) state["ack_seq"] = streams_.received_next - 1;
  if (!streams_.early.empty()) state["ack_bitmap"] = held_bits(streams_.received_next, streams_.early);
  state["recv_window"] = streams_.window;
  state["recv_window_bytes"] = streams_.window_bytes;
  if (revision_ == 2 && streams_.duplicates > 0) state["dup"] = std::exchange(streams_.duplicates, 0);
  return state;
}

void Player::send_ack(Link& on, const json::object& payload, const std::string& for_id) {
  json::object frame{{"type", "control.ack"}, {"payload", payload}};
  if (!for_id.empty()) {
    frame["ack"] = {{"for", for_id}};
    frame["payload"].as_object()["for"] = for_id;
  }
  send(on, filled(std::move(frame)));
}

void Player::do_duties(Link& on, const json::object& frame) {
  const std::string type = text_of_member(frame, "type");
  const bool asks = asks_for_ack(frame);
  if (!type.starts_with("control.")) {
    if (case_.auto_answer && asks) {
      send_ack(on, ack_state(), text_of_member(frame, "id"));
    } else if (case_.auto_ack) {
      send_ack(on, ack_state(), "");
    }
    return;
  }
  // The ceremony, and what only a case can know, is not done here.
  if (!case_.auto_answer || !asks || type == "control.handshake" || type == "control.register" ||
      type == "control.resume" || (type == "control.session.accept" && in_ceremony_)) {
    return;
  }
  // A worker of revision 1 does not answer a drain.
  if (revision_ == 1 && type == "control.drain") return;
  send_ack(on, case_.auto_ack || type == "control.ack" ? ack_state() : json::object{{"ok", true}},
           type == "control.ack" ? "" : text_of_member(frame, "id"));
}

bool Player::note_received(const json::object& frame) {
  const auto* const seq = frame.if_contains("seq");
  if (seq == nullptr || !seq->is_number()) return false;
  const auto number = seq->to_number<std::uint64_t>();
  if (number < streams_.received_next || streams_.early.contains(number)) {
    ++streams_.duplicates;
    return true;
  }
  streams_.early.insert(number);
  while (streams_.early.erase(streams_.received_next) > 0) ++streams_.received_next;
  return false;
}

void Player::note_acked(const json::object& frame) {
  const auto* const last = frame.at("payload").as_object().if_contains("ack_seq");
  if (last == nullptr || !last->is_number() || frame.at("type") != "control.ack") return;
  const auto number = last->to_number<std::uint64_t>();
  streams_.sent.erase(streams_.sent.begin(), streams_.sent.upper_bound(number));
  streams_.acked_next = std::max(streams_.acked_next, number + 1);
}

void Player::on_message(Wire& wire, BytesView payload, MessageKind kind) {
  Link& on = link_of(wire);
  if (violation_ || on.inbox.size() >= kInboxMax) {
    violation_ = violation_.value_or("more frames than a case can have: a flood");
    return wire.stall(true);
  }
  const auto parts = parts_of(payload, kind);
  if (!parts) {
    log(WireEvent::Kind::Received, on.name, "a binary message that is not as ATT-1 says");
    violation_ = parts.error().reason;
    return;
  }
  log(WireEvent::Kind::Received, on.name, std::string{parts->envelope});
  auto read = read_frame(*parts, *setup_.schemas, revision_);
  if (!read) {
    violation_ = read.error().reason;
    return;
  }
  json::object frame = from_wire(std::move(*read), revision_);
  if (parts->attached) frame["bytes"] = *parts->attached;
  if (const auto* const body = frame.at("payload").if_object()) {
    const std::string token = text_of_member(*body, "session_token");
    if (!token.empty()) secrets_.insert(token);
  }
  note_acked(frame);
  const bool is_repeat = note_received(frame);
  in_callback_ = true;
  if (on.is_ready || in_ceremony_) do_duties(on, frame);
  in_callback_ = false;
  on.inbox.push_back({std::move(frame), loop_.now().steady, arrivals_++, is_repeat});
}

void Player::on_pong(Wire& wire, BytesView payload) {
  link_of(wire).pongs.emplace_back(payload);
}

void Player::on_violation(Wire& wire, const std::string& what) {
  log(WireEvent::Kind::Note, link_of(wire).name, "a violation of WebSocket: " + what);
  violation_ = "a violation of WebSocket: " + what;
}

void Player::on_end(Wire& wire, const WireEnd& end) {
  Link& on = link_of(wire);
  on.end = end;
  on.is_ready = false;
  log(WireEvent::Kind::Note, on.name,
      end.is_ours ? "cut"
      : end.code  ? "closed by the judged: " + std::to_string(*end.code) + " " + end.reason
                  : "the connection ended without a close frame " + end.reason);
}

Player::Link& Player::link_of(const Wire& wire) {
  for (auto& [name, each] : links_) {
    if (each->wire.get() == &wire) return *each;
  }
  return link("earlier");
}

}  // namespace windlass::conformance
