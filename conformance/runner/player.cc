#include "conformance/runner/player.h"

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <random>

#include "conformance/runner/hex.h"
#include "conformance/runner/hook_output.h"

namespace windlass::conformance {
namespace {

constexpr Duration kExpectWithin = seconds{2};
constexpr Duration kNoneFor = milliseconds{300};
constexpr Duration kCloseWithin = seconds{2};
constexpr Duration kStandsFor = milliseconds{100};
constexpr Duration kRestartWithin = seconds{10};  // after a case that stopped the scheduler

Instant steady_now() {
  return Instant{std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch())};
}

std::string new_instance() {
  static thread_local std::mt19937_64 random{std::random_device{}()};
  return "c-" + std::to_string(random() % 1'000'000'000'000);
}

Duration milliseconds_of(const json::object& step, const char* name, Duration otherwise) {
  const auto* const value = step.if_contains(name);
  return value == nullptr ? otherwise : Duration{milliseconds{value->to_number<int>()}};
}

std::string_view text_at(const json::object& value, const char* name) {
  const auto* const member = value.if_contains(name);
  return member == nullptr ? std::string_view{} : std::string_view{member->as_string()};
}

std::string close_outcome(const std::optional<WireEnd>& end) {
  if (!end) return "open";
  return end->code ? std::to_string(*end->code) : "tcp";
}

}  // namespace

Player::Player(const Setup& setup, const Case& played, int revision)
    : setup_(setup),
      case_(played),
      revision_(revision),
      begin_(steady_now()),
      deadline_(begin_ + played.deadline),
      faults_(played.faults) {
  variables_["instance"] = new_instance();
  variables_["tenant"] = setup.tenant;
  variables_["token"] = setup.token;
  variables_["runtime_token"] = setup.runtime_token;
  variables_["other_token"] = setup.other_token;
  variables_["scheduler_id"] = "conformance";
  variables_["big"] = 1'048'576;
  for (const std::string& secret : {setup.token, setup.runtime_token, setup.other_token}) {
    if (!secret.empty()) secrets_.insert(secret);
  }
  if (revision_ == 1) streams_.window = 64;
}

Player::~Player() {
  worker_.reset();
  std::error_code ignored;
  if (!state_folder_.empty()) std::filesystem::remove_all(state_folder_, ignored);
}

CaseResult Player::play() {
  CaseResult result;
  result.id = case_.id;
  result.clause = case_.clause;
  result.area = case_.area;
  result.says = case_.says;
  result.level = case_.level;
  result.role = case_.role;
  result.revision = revision_;
  result.negative = case_.negative;
  for (const json::value& step : case_.steps) result.steps.push_back(json::serialize(step));
  try {
    run_steps();
    result.outcome = outcome_;
  } catch (const Stopped& stopped) {
    result.outcome = stopped.outcome;
    result.expected = stopped.expected;
    result.came = stopped.came;
  } catch (const std::exception& problem) {
    result.outcome = "harness";
    result.came = problem.what();
  }
  judge(result);
  try {
    deadline_ = std::max(deadline_, steady_now() + kRestartWithin);
    if (is_stopped_) do_hook({{"name", "restart"}});
  } catch (const Stopped& stopped) {
    result.behaviour = Verdict::HarnessError;
    result.came = stopped.came;
  }
  result.milliseconds = std::chrono::duration<double, std::milli>(steady_now() - begin_).count();
  result.wire = std::move(wire_log_);
  result.came = masked(result.came);
  result.expected = masked(result.expected);
  return result;
}

void Player::judge(CaseResult& result) {
  if (result.outcome == "harness") {
    result.behaviour = Verdict::HarnessError;
    return;
  }
  if (result.outcome == "unimplemented") {
    result.behaviour = Verdict::Unimplemented;
    return;
  }
  const auto found = case_.behaviour.find(result.outcome);
  result.behaviour = found == case_.behaviour.end() ? Verdict::Failed : found->second;
  if (result.expected.empty() && result.behaviour != Verdict::Ok) {
    result.expected = case_.says;
    result.came = "the outcome was " + result.outcome;
  }
  if (!case_.close.empty() && links_.contains("main")) judge_close(result);
}

void Player::judge_close(CaseResult& result) {
  Link& main = link("main");
  const bool may_stand = case_.close.contains("open");
  deadline_ = std::max(deadline_, steady_now() + kCloseWithin);
  try {
    wait(may_stand ? kStandsFor : kCloseWithin, [&] { return main.end.has_value(); });
  } catch (const Stopped&) {
    // A violation that comes with the close was judged, or comes too late to be.
  }
  result.close_outcome = close_outcome(main.end);
  auto found = case_.close.find(result.close_outcome);
  if (found == case_.close.end() && main.end && main.end->code) found = case_.close.find("any");
  if (found != case_.close.end()) {
    result.close = found->second;
  } else if (!main.end) {
    result.close = Verdict::Failed;
  } else {
    result.close = main.end->code ? Verdict::WrongCode : Verdict::Unclean;
  }
  if (*result.close == Verdict::Ok || !result.came.empty()) return;
  result.expected = "the connection ends with one of:";
  for (const auto& [code, verdict] : case_.close) result.expected += " " + code;
  result.came = result.close_outcome;
}

void Player::run_steps() {
  for (const std::string& need : case_.needs) {
    const bool is_there = need == "client-certificate" ? setup_.has_client_certificate
                          : need == "other-token"      ? !setup_.other_token.empty()
                                                       : setup_.hooks.contains(need.substr(5));
    if (is_there) continue;
    stop("unimplemented", need, "nothing was given for it: see docs/conformance.md, Hooks");
  }
  if (case_.role == Role::Worker) start_worker();
  for (const json::value& step : case_.steps) {
    log(WireEvent::Kind::Step, "", json::serialize(step));
    run_step(step.as_object());
    check_violation();
    ++step_;
  }
}

// What came before the runner acts cannot answer that: what a step passed over is out of the way, and
// expect_none looks at what comes from here on.
void Player::begin_action() {
  since_ = arrivals_;
  for (auto& [name, each] : links_) {
    each->inbox.erase(each->inbox.begin(),
                      each->inbox.begin() + static_cast<std::ptrdiff_t>(each->looked_at));
    each->looked_at = 0;
  }
}

void Player::run_step(const json::object& step) {
  Link& on = link(std::string{step.contains("on") ? text_at(step, "on") : "main"});
  const bool only_looks = std::any_of(step.begin(), step.end(), [](const auto& member) {
    return member.key().starts_with("expect") || member.key() == "wait";
  });
  if (!only_looks) begin_action();
  const auto has = [&](const char* verb) { return step.if_contains(verb); };
  const auto value_of = [&](const char* verb) { return substitute(step.at(verb), variables()); };
  if (has("connect")) return connect(on, value_of("connect").as_object());
  if (has("accept_dial")) {
    const json::object options = value_of("accept_dial").as_object();
    return accept_dial(on, options, milliseconds_of(options, "within_ms", seconds{6}));
  }
  if (has("greet")) return greet(on, value_of("greet").as_object());
  if (has("open")) return open(on, value_of("open").as_object());
  if (has("reconnect"))
    return reconnect(on, value_of("reconnect").as_object(), milliseconds_of(step, "within_ms", seconds{6}));
  if (has("send")) return do_send(on, step);
  if (has("send_text")) return transmit_text(on, std::string{value_of("send_text").as_string()}, nullptr);
  if (has("send_examples")) return do_send_examples(on, step.at("send_examples").as_array());
  if (has("send_bytes")) {
    log(WireEvent::Kind::Sent, on.name, "bytes " + std::string{text_at(step, "send_bytes")});
    if (on.wire) on.wire->write(hex_bytes(text_at(step, "send_bytes")));
    return;
  }
  if (has("send_frame")) return do_send_frame(on, value_of("send_frame").as_object());
  if (has("ack")) {
    json::value payload = ack_state();
    merge(payload, value_of("ack"));
    return send_ack(on, payload.as_object(), "");
  }
  if (has("expect")) return do_expect(on, step);
  if (has("expect_one_of")) return do_expect_one_of(on, step);
  if (has("expect_none")) return do_expect_none(on, step);
  if (has("expect_close")) return do_expect_close(on, step);
  if (has("expect_http")) {
    return do_expect_http(on, step.at("expect_http").as_object());
  }
  if (has("wait")) {
    wait(milliseconds{step.at("wait").to_number<int>()}, [] { return false; });
    return;
  }
  if (has("cut")) return cut(on);
  if (has("close")) {
    const json::object& close = step.at("close").as_object();
    const auto* const code = close.if_contains("code");
    const auto number = code == nullptr ? std::uint16_t{1000} : code->to_number<std::uint16_t>();
    log(WireEvent::Kind::Note, on.name, "the runner closes with " + std::to_string(number));
    if (on.wire) on.wire->send_close(number, text_at(close, "reason"));
    return;
  }
  if (has("stall")) {
    if (on.wire) on.wire->stall(step.at("stall").as_bool());
    return;
  }
  if (has("ping")) {
    if (on.wire) on.wire->send_ping(text_at(step, "ping"));
    return;
  }
  if (has("expect_pong")) return do_expect_pong(on, step);
  if (has("hook")) return do_hook(value_of("hook").as_object());
  if (has("stop_worker")) return do_stop_worker(step.at("stop_worker"));
  if (has("start_worker")) return start_worker();
  if (has("expect_exit")) return do_expect_exit(step);
}

void Player::do_send(Link& on, const json::object& step) {
  const auto* const times = step.if_contains("times");
  const std::uint64_t count = times == nullptr ? 1 : times->to_number<std::uint64_t>();
  const auto* const bytes = step.if_contains("bytes");
  for (std::uint64_t n = 0; n < count; ++n) {
    variables_["n"] = n;
    const std::string attached =
        bytes == nullptr ? "" : std::string{substitute(*bytes, variables()).as_string()};
    json::object frame = substitute(step.at("send"), variables()).as_object();
    if (bytes != nullptr && !frame.contains("attachment")) {
      frame["attachment"] = {{"bytes", attached.size()}, {"type", "application/octet-stream"}};
    }
    send(on, filled(std::move(frame)), bytes == nullptr ? nullptr : &attached);
  }
}

void Player::do_send_frame(Link& on, const json::object& value) {
  websocket::FrameHeader header{.opcode = websocket::Opcode::Text};
  if (const auto* const opcode = value.if_contains("opcode"))
    header.opcode = static_cast<websocket::Opcode>(opcode->to_number<int>());
  if (const auto* const final = value.if_contains("final")) header.final = final->as_bool();
  if (const auto* const bits = value.if_contains("reserved_bits"))
    header.reserved_bits = bits->to_number<std::uint8_t>();
  if (const auto* const length = value.if_contains("length"))
    header.length = length->to_number<std::uint64_t>();
  const auto* const masked_or_none = value.if_contains("masked");
  const bool is_masked =
      masked_or_none == nullptr ? case_.role == Role::Scheduler : masked_or_none->as_bool();
  const std::string payload =
      value.contains("hex") ? hex_bytes(text_at(value, "hex")) : std::string{text_at(value, "text")};
  log(WireEvent::Kind::Sent, on.name, "frame " + json::serialize(value));
  if (on.wire) on.wire->send_frame(header, payload, is_masked);
}

void Player::do_expect(Link& on, const json::object& step) {
  const Instant before = matched_at_;
  const json::value pattern = substitute(step.at("expect"), variables());
  static_cast<void>(expect_frame(on, pattern, milliseconds_of(step, "within_ms", kExpectWithin)));
  const Duration least = milliseconds_of(step, "not_before_ms", Duration{});
  if (least == Duration{} || matched_at_ - before >= least) return;
  stop("early",
       json::serialize(pattern) + " no sooner than " + json::serialize(step.at("not_before_ms")) +
           " ms after the frame before",
       std::to_string(std::chrono::duration_cast<milliseconds>(matched_at_ - before).count()) + " ms");
}

void Player::do_expect_one_of(Link& on, const json::object& step) {
  std::map<std::string, json::value> patterns;
  for (const auto& [outcome, pattern] : step.at("expect_one_of").as_object()) {
    patterns[std::string{outcome}] = substitute(pattern, variables());
  }
  static_cast<void>(expect_frame(on, patterns, milliseconds_of(step, "within_ms", kExpectWithin), &outcome_));
}

void Player::do_expect_none(Link& on, const json::object& step) {
  const json::value pattern = substitute(step.at("expect_none"), variables());
  std::optional<json::object> unwanted;
  const auto look = [&] {
    for (const Arrival& each : on.inbox) {
      Variables ignored;
      const json::value frame = each.frame;
      if (each.number >= since_ && fits(pattern, &frame, ignored)) unwanted = each.frame;
    }
    return unwanted.has_value();
  };
  wait(milliseconds_of(step, "for_ms", kNoneFor), look);
  if (unwanted) stop("unwanted", "nothing that fits " + json::serialize(pattern), json::serialize(*unwanted));
}

void Player::do_expect_http(Link& on, const json::object& wanted) {
  json::object headers;
  if (on.head) {
    for (const auto& [name, value] : on.head->headers) headers[name] = value;
  }
  const json::value came{{"status", on.status}, {"headers", headers}};
  Variables captured;
  if (!fits(wanted, &came, captured))
    stop("http-" + std::to_string(on.status), json::serialize(wanted), json::serialize(came));
}

void Player::do_expect_close(Link& on, const json::object& step) {
  const auto* const code = step.at("expect_close").as_object().if_contains("code");
  const std::string wanted = code == nullptr ? "any end" : "close " + json::serialize(*code);
  if (!wait(milliseconds_of(step, "within_ms", kCloseWithin), [&] { return on.end.has_value(); }))
    stop("silence", wanted, "the connection still stands");
  const auto is_it = [&](const json::value& each) {
    return on.end->code && each.to_number<int>() == *on.end->code;
  };
  const auto* const reason = step.at("expect_close").as_object().if_contains("reason");
  Variables ignored;
  const json::value said(on.end->reason);
  if (reason != nullptr && !fits(*reason, &said, ignored))
    stop("closed", "a close reason that fits " + json::serialize(*reason), on.end->reason);
  if (code == nullptr) return;
  const bool fits_code =
      code->is_array() ? std::any_of(code->as_array().begin(), code->as_array().end(), is_it) : is_it(*code);
  if (!fits_code) stop("closed", wanted, close_outcome(on.end));
}

void Player::do_expect_pong(Link& on, const json::object& step) {
  const std::string wanted{text_at(step, "expect_pong")};
  const auto has_come = [&] { return std::find(on.pongs.begin(), on.pongs.end(), wanted) != on.pongs.end(); };
  if (wait(milliseconds_of(step, "within_ms", kExpectWithin), has_come)) return;
  stop(on.end ? "closed" : "silence", "a pong with " + wanted, close_outcome(on.end));
}

void Player::do_hook(const json::object& hook) {
  const std::string name{text_at(hook, "name")};
  const auto command = setup_.hooks.find(name);
  if (command == setup_.hooks.end()) stop("unimplemented", "hook:" + name, "no command was given for it");
  std::map<std::string, std::string> environment;
  const json::object values = variables();
  for (const auto& [from, to] :
       {std::pair{"instance", "INSTANCE"}, {"tenant", "TENANT"}, {"session_id", "SESSION"}}) {
    const auto* const value = values.if_contains(from);
    if (value != nullptr && value->is_string()) environment[to] = std::string{value->as_string()};
  }
  if (const auto* const more = hook.if_contains("env")) {
    for (const auto& [key, value] : more->as_object())
      environment[std::string{key}] = std::string{value.as_string()};
  }
  log(WireEvent::Kind::Note, "", "hook " + name);
  HookOutput output;
  Process process{command->second, environment, output.path()};
  std::optional<int> code;
  wait(seconds{30}, [&] {
    code = process.exit_code();
    return code.has_value();
  });
  is_stopped_ = name == "stop" || (is_stopped_ && name != "restart");
  if (code != 0)
    stop("harness", "the command of hook " + name + " ends with exit code 0",
         (code ? "exit code " + std::to_string(*code) : "it did not end in time") + output.last_line());
}

void Player::do_stop_worker(const json::value& how) {
  log(WireEvent::Kind::Note, "", how == "kill" ? "SIGKILL to the worker" : "SIGTERM to the worker");
  if (worker_) worker_->signal(how == "kill" ? SIGKILL : SIGTERM);
  if (how == "kill") wait(seconds{2}, [&] { return !worker_ || worker_->exit_code().has_value(); });
}

void Player::do_expect_exit(const json::object& step) {
  std::optional<int> code;
  wait(milliseconds_of(step, "within_ms", kExpectWithin), [&] {
    code = worker_ ? worker_->exit_code() : std::nullopt;
    return code.has_value();
  });
  const auto* const wanted = step.at("expect_exit").as_object().if_contains("code");
  if (!code) stop("silence", "the worker ends", "it still runs");
  if (wanted != nullptr && wanted->to_number<int>() != *code)
    stop("exit", "exit code " + json::serialize(*wanted), "exit code " + std::to_string(*code));
}

json::object Player::expect_frame(Link& on, const json::value& pattern, Duration within) {
  return expect_frame(on, {{"", pattern}}, within, nullptr);
}

json::object Player::expect_frame(Link& on, const std::map<std::string, json::value>& patterns,
                                  Duration within, std::string* which) {
  std::string wanted;
  for (const auto& [name, pattern] : patterns)
    wanted += (wanted.empty() ? "" : " or ") + json::serialize(pattern);
  std::size_t seen = 0;
  std::optional<json::object> found;
  std::optional<json::object> other;
  // Runs inside the loop: what it finds is acted on afterwards.
  const auto look = [&] {
    for (; seen < on.inbox.size(); ++seen) {
      const Arrival& arrival = on.inbox[seen];
      const json::value frame = arrival.frame;
      for (const auto& [name, pattern] : patterns) {
        Variables captured;
        if (!fits(pattern, &frame, captured)) continue;
        for (const auto& [variable, value] : captured) variables_[variable] = value;
        if (which != nullptr) *which = name;
        matched_at_ = arrival.at;
        since_ = std::max(since_, arrival.number + 1);
        found = arrival.frame;
        on.inbox.erase(on.inbox.begin() + static_cast<std::ptrdiff_t>(seen));
        if (on.looked_at > seen) --on.looked_at;
        return true;
      }
      const json::value& type = frame.at("type");
      const bool may_come = arrival.is_repeat || type == "control.heartbeat" ||
                            (type == "control.ack" && frame.at("payload").at("ok") == true);
      if (!may_come) other = arrival.frame;
      if (other) return true;
      on.looked_at = std::max(on.looked_at, seen + 1);
    }
    return on.end.has_value() || violation_.has_value();
  };
  wait(within, look);
  if (found) return *found;
  if (other) stop("other", wanted, json::serialize(*other));
  check_violation();
  if (on.end) stop("closed", wanted, "the connection ended: " + close_outcome(on.end) + " " + on.end->reason);
  stop("silence", wanted,
       worker_ && worker_->exit_code() ? "nothing: the worker has ended" : "nothing in time");
}

bool Player::wait(Duration within, const std::function<bool()>& condition) {
  const Instant until = std::min(steady_now() + within, deadline_);
  // Exit codes of processes come without an event, so every wait looks again now and then.
  bool holds = false;
  while (!(holds = run_until(loop_, std::min(until, steady_now() + milliseconds{20}), condition))) {
    if (steady_now() >= until) break;
  }
  return holds;
}

void Player::check_violation() {
  if (violation_) stop("invalid", "messages that fit the published schemas", *violation_);
}

void Player::stop(std::string outcome, std::string expected, std::string came) const {
  throw Stopped{std::move(outcome), std::move(expected),
                std::move(came) + " (step " + std::to_string(step_ + 1) + " of " +
                    std::to_string(case_.steps.size()) + ")"};
}

Player::Link& Player::link(const std::string& name) {
  auto& slot = links_[name];
  if (!slot) {
    slot = std::make_unique<Link>();
    slot->name = name;
  }
  return *slot;
}

void Player::log(WireEvent::Kind kind, const std::string& connection, std::string text) {
  constexpr std::size_t kLogged = 2000;
  if (wire_log_.size() >= kLogged) return;
  wire_log_.push_back({kind, std::chrono::duration<double, std::milli>(steady_now() - begin_).count(),
                       connection, masked(std::move(text))});
}

std::string Player::masked(std::string text) const {
  for (const std::string& secret : secrets_) {
    for (std::size_t at = text.find(secret); at != text.npos; at = text.find(secret, at)) {
      text.replace(at, secret.size(), "***");
    }
  }
  return text;
}

}  // namespace windlass::conformance
