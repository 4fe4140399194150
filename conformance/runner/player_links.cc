// Connections, and the ceremony that leads to a session.
#include <poll.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "conformance/runner/player.h"
#include "protocol/websocket/upgrade.h"

namespace windlass::conformance {
namespace {

constexpr int kConnectMilliseconds = 3000;
constexpr Duration kUpgradeWithin = seconds{3};
constexpr Duration kCeremonyWithin = seconds{3};

websocket::UpgradeNonce new_nonce() {
  static thread_local std::mt19937_64 random{std::random_device{}()};
  websocket::UpgradeNonce nonce{};
  for (auto& byte : nonce) byte = static_cast<std::uint8_t>(random());
  return nonce;
}

std::string with_headers(std::string request, const json::object& options) {
  const auto* const headers = options.if_contains("headers");
  if (headers == nullptr) return request;
  std::string lines;
  for (const auto& [name, value] : headers->as_object()) {
    lines += std::string{name} + ": " + std::string{value.as_string()} + "\r\n";
  }
  return request.insert(request.size() - 2, lines);
}

int status_of(const HttpHead& head) {
  const std::size_t space = head.first_line.find(' ');
  return space == std::string::npos ? 0 : std::atoi(head.first_line.c_str() + space + 1);
}

int wanted_status(const json::object& options) {
  const auto* const status = options.if_contains("status");
  return status == nullptr ? 101 : status->to_number<int>();
}

std::string member_text(const json::object& frame, const char* name) {
  const auto* const value = frame.if_contains(name);
  return value != nullptr && value->is_string() ? std::string{value->as_string()} : std::string{};
}

json::object options_for(const json::object& options, const char* name) {
  const auto* const value = options.if_contains(name);
  return value == nullptr ? json::object{} : value->as_object();
}

// What comes from the judged during the ceremony: a frame of this type whose payload fits what the case says.
json::value pattern_of(const char* type, const json::object& options, const char* name) {
  return json::object{{"type", type}, {"payload", options_for(options, name)}};
}

std::string new_secret(const char* prefix) {
  static thread_local std::mt19937_64 random{std::random_device{}()};
  return prefix + std::to_string(random()) + std::to_string(random());
}

}  // namespace

// An earlier wire may still stand: its peer has not noticed.
void Player::renew(Link& on) {
  if (on.wire) old_wires_.push_back(std::move(on.wire));
  on.end.reset();
  on.head.reset();
  on.inbox.clear();
  on.looked_at = 0;
  on.status = 0;
  on.is_ready = false;
}

void Player::connect(Link& on, const json::object& options) {
  renew(on);
  auto socket = begin_connect(setup_.address);
  if (!socket) stop("no-connection", "a TCP connection to " + setup_.address.text(), socket.error().reason);
  pollfd waiting{socket->fd(), POLLOUT, 0};
  const bool is_answered = ::poll(&waiting, 1, kConnectMilliseconds) == 1;
  if (const int wrong = is_answered ? connect_error(socket->fd()) : ETIMEDOUT; wrong != 0)
    stop("no-connection", "a TCP connection to " + setup_.address.text(), error_text(wrong));
  const auto nonce = new_nonce();
  const std::string target = options.contains("path") ? member_text(options, "path") : setup_.path;
  auto request = websocket::upgrade_request({setup_.host, target}, nonce);
  if (!request) stop("harness", "an upgrade request", request.error().reason);
  const bool bare = member_text(options, "certificate") == "none";
  const auto& tls = bare ? setup_.tls_without_certificate : setup_.tls;
  SocketStream::Parts parts{std::move(*socket), nullptr, {}};
  if (tls) parts.tls = std::make_unique<TlsPump>(tls->connect(setup_.host.substr(0, setup_.host.rfind(':'))));
  on.nonce.assign(nonce.begin(), nonce.end());
  on.wire = std::make_unique<Wire>(loop_, std::move(parts), websocket::Side::Client,
                                   with_headers(*request, options), static_cast<WireOwner&>(*this));
  wait(kUpgradeWithin, [&] { return on.status != 0 || on.end.has_value(); });
  const int wanted = wanted_status(options);
  if (on.status == wanted) return;
  if (on.status == 0)
    stop(on.end ? "closed" : "silence", "an HTTP answer with status " + std::to_string(wanted),
         on.end ? "the connection ended: " + on.end->reason : "nothing in time");
  stop("http-" + std::to_string(on.status), "HTTP " + std::to_string(wanted),
       "HTTP " + std::to_string(on.status));
}

void Player::on_head(Wire& wire, const HttpHead& head) {
  Link& on = link_of(wire);
  on.head = head;
  log(WireEvent::Kind::Received, on.name, head.first_line);
  if (!wire.is_client()) return answer_upgrade(on, head);
  on.status = status_of(head);
  if (on.status != 101) return;
  websocket::UpgradeNonce nonce{};
  std::copy(on.nonce.begin(), on.nonce.end(), nonce.begin());
  websocket::UpgradeResponseReader reader{nonce};
  std::string copy = head.text;
  std::span<char> bytes{copy.data(), copy.size()};
  if (const auto reply = reader.handle_bytes(bytes); !reply) {
    violation_ = "its answer to the upgrade: " + reply.error().reason;
  }
  wire.begin_frames();
}

void Player::answer_upgrade(Link& on, const HttpHead& head) {
  const std::size_t begin = head.first_line.find(' ');
  const std::string target =
      head.first_line.substr(begin + 1, head.first_line.find(' ', begin + 1) - begin - 1);
  websocket::UpgradeRules rules;
  rules.paths = {target.substr(0, target.find('?'))};
  websocket::UpgradeRequestReader reader{rules};
  std::string copy = head.text;
  std::span<char> bytes{copy.data(), copy.size()};
  const auto request = reader.handle_bytes(bytes);
  if (!request || !*request) {
    violation_ =
        "its upgrade request: " + (request ? std::string{"it is not whole"} : request.error().reason);
    return on.wire->cut();
  }
  on.status = wanted_status(dial_options_);
  if (on.status == 101) {
    on.wire->write(with_headers(websocket::accept_response(**request), dial_options_));
    return on.wire->begin_frames();
  }
  std::string refusal =
      "HTTP/1.1 " + std::to_string(on.status) + " Refused\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
  on.wire->write(with_headers(std::move(refusal), dial_options_));
  on.wire->finish();
}

void Player::start_worker() {
  if (state_folder_.empty()) {
    std::string pattern = std::filesystem::temp_directory_path() / "windlass-conformance-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) stop("harness", "a temporary folder", "none could be made");
    state_folder_ = pattern;
  }
  if (!listener_.is_open()) {
    auto listener = listen_on(*numeric_address("127.0.0.1", 0));
    if (!listener) stop("harness", "a listener on 127.0.0.1", listener.error().reason);
    listener_ = std::move(*listener);
  }
  const std::string port = std::to_string(local_address(listener_.fd()).port());
  const std::string scheme = setup_.server_tls ? "wss" : "ws";
  worker_ = std::make_unique<Process>(
      setup_.command,
      std::map<std::string, std::string>{{"WINDLASS_URL", scheme + "://127.0.0.1:" + port + "/ws/worker"},
                                         {"WINDLASS_TOKEN", setup_.token},
                                         {"WINDLASS_CA", setup_.authority_file},
                                         {"WINDLASS_TENANT", setup_.tenant},
                                         {"WINDLASS_INSTANCE", member_text(variables_, "instance")},
                                         {"WINDLASS_STATE", state_folder_},
                                         {"WINDLASS_REVISION", std::to_string(revision_)},
                                         {"CASE", case_.worker}},
      state_folder_ + "/worker.log");
}

void Player::accept_dial(Link& on, const json::object& options, Duration within) {
  renew(on);
  dial_options_ = options;
  Accepted accepted;
  wait(within, [&] {
    if (!accepted.socket.is_open()) accepted = accept_one(listener_.fd());
    return accepted.socket.is_open() || (worker_ && worker_->exit_code().has_value());
  });
  if (!accepted.socket.is_open()) {
    const auto code = worker_ ? worker_->exit_code() : std::nullopt;
    if (code == 127) stop("unimplemented", "a worker that knows the case " + case_.worker, "exit code 127");
    if (code) stop("exit", "the worker dials", "it ended with exit code " + std::to_string(*code));
    stop("no-dial", "the worker dials", "it did not in time");
  }
  SocketStream::Parts parts{std::move(accepted.socket), nullptr, {}};
  if (setup_.server_tls) parts.tls = std::make_unique<TlsPump>(setup_.server_tls->accept());
  on.wire = std::make_unique<Wire>(loop_, std::move(parts), websocket::Side::Server, "",
                                   static_cast<WireOwner&>(*this));
  wait(kUpgradeWithin, [&] { return on.status != 0 || on.end.has_value() || violation_; });
  check_violation();
  if (on.status == 0)
    stop(on.end ? "closed" : "silence", "an upgrade request",
         on.end ? "the connection ended: " + on.end->reason : "nothing in time");
  if (const auto* const wanted = options.if_contains("request")) {
    json::object headers;
    for (const auto& [name, value] : on.head->headers) headers[name] = value;
    const std::size_t begin = on.head->first_line.find(' ');
    const json::value request{
        {"target", on.head->first_line.substr(begin + 1, on.head->first_line.rfind(' ') - begin - 1)},
        {"headers", headers}};
    Variables captured;
    if (!fits(*wanted, &request, captured)) stop("other", json::serialize(*wanted), json::serialize(request));
  }
}

// Never from inside a callback of the wire: the socket is closed here.
void Player::cut(Link& on) {
  if (!on.wire) return;
  on.wire->cut();
  on.wire.reset();
}

void Player::reach(Link& on) {
  if (on.wire && !on.end) return;
  if (case_.role == Role::Scheduler) return connect(on, {});
  accept_dial(on, {}, seconds{6});
}

void Player::greet(Link& on, const json::object& options) {
  reach(on);
  in_ceremony_ = true;
  if (case_.role == Role::Scheduler) {
    const json::object payload = merged(variables().at("handshake").as_object(), options, "handshake");
    const std::string id =
        send(on, filled({{"type", "control.handshake"}, {"ack", {{"request", true}}}, {"payload", payload}}));
    expect_frame(on, json::object{{"type", "control.ack"}, {"payload", {{"ok", true}, {"for", id}}}},
                 kCeremonyWithin);
  } else {
    const json::object frame =
        expect_frame(on, pattern_of("control.handshake", options, "handshake"), kCeremonyWithin);
    variables_["handshake_id"] = frame.at("id");
    send_ack(on, {{"ok", true}}, member_text(frame, "id"));
  }
  in_ceremony_ = false;
}

void Player::open(Link& on, const json::object& options) {
  greet(on, options);
  streams_.next_seq = streams_.received_next = streams_.duplicates = streams_.acked_next = 0;
  streams_.sent.clear();
  streams_.early.clear();
  in_ceremony_ = true;
  if (case_.role == Role::Scheduler) {
    open_as_worker(on, options);
  } else {
    open_as_scheduler(on, options);
  }
  in_ceremony_ = false;
  on.is_ready = true;
}

void Player::open_as_worker(Link& on, const json::object& options) {
  const json::object payload = merged(variables().at("register").as_object(), options, "register");
  const std::string id =
      send(on, filled({{"type", "control.register"}, {"ack", {{"request", true}}}, {"payload", payload}}));
  expect_frame(on, json::object{{"type", "control.ack"}, {"payload", {{"ok", true}, {"for", id}}}},
               kCeremonyWithin);
  take_accept(on, expect_frame(on, json::object{{"type", "control.session.accept"}}, kCeremonyWithin),
              options);
}

void Player::take_accept(Link& on, const json::object& accept, const json::object& options) {
  const json::object& payload = accept.at("payload").as_object();
  variables_["session_id"] = payload.at("session_id");
  variables_["session_token"] = payload.at("session_token");
  variables_["accept"] = payload;
  variables_["scheduler_id"] = accept.at("sender").at("id");
  on.is_ready = true;
  if (revision_ == 1) return;
  const json::object ack = merged(ack_state(), options, "ack");
  streams_.window =
      ack.contains("recv_window") ? ack.at("recv_window").to_number<std::uint64_t>() : streams_.window;
  streams_.window_bytes = ack.contains("recv_window_bytes")
                              ? ack.at("recv_window_bytes").to_number<std::uint64_t>()
                              : streams_.window_bytes;
  send_ack(on, ack, member_text(accept, "id"));
}

void Player::open_as_scheduler(Link& on, const json::object& options) {
  const json::object frame =
      expect_frame(on, pattern_of("control.register", options, "register"), kCeremonyWithin);
  send_ack(on, {{"ok", true}}, member_text(frame, "id"));
  variables_["session_id"] = new_secret("s-");
  send_accept(on, false, options);
}

void Player::send_accept(Link& on, bool resumed, const json::object& options) {
  variables_["session_token"] = new_secret("t-");
  secrets_.insert(member_text(variables_, "session_token"));
  json::object payload{{"session_id", variables_.at("session_id")},
                       {"session_token", variables_.at("session_token")},
                       {"worker_instance_id", variables_.at("instance")},
                       {"resumed", resumed}};
  if (streams_.received_next > 0) payload["last_seen_seq"] = streams_.received_next - 1;
  payload["earliest_retained_seq"] = streams_.acked_next;
  payload["recv_window"] = streams_.window;
  payload["recv_window_bytes"] = streams_.window_bytes;
  payload["heartbeat_interval_ms"] = 30'000;
  payload["resume_ttl_ms"] = 300'000;
  payload["frame_bytes_max"] = 1'048'576;
  payload = merged(std::move(payload), options, "accept");
  if (payload.contains("recv_window")) streams_.window = payload.at("recv_window").to_number<std::uint64_t>();
  if (payload.contains("recv_window_bytes"))
    streams_.window_bytes = payload.at("recv_window_bytes").to_number<std::uint64_t>();
  json::object frame{{"type", "control.session.accept"}, {"payload", payload}};
  if (revision_ == 2) frame["ack"] = {{"request", true}};
  const std::string id = send(on, filled(std::move(frame)));
  on.is_ready = true;
  if (revision_ == 1) return;
  json::object ack = options_for(options, "ack");
  ack["ok"] = true;
  ack["for"] = id;
  expect_frame(on, json::object{{"type", "control.ack"}, {"payload", ack}}, kCeremonyWithin);
}

void Player::reconnect(Link& on, const json::object& options, Duration within) {
  cut(on);
  if (case_.role == Role::Scheduler) {
    connect(on, {});
    if (revision_ == 2) greet(on, options);
    in_ceremony_ = true;
    resume_as_worker(on, options);
  } else {
    accept_dial(on, {}, within);
    if (revision_ == 2) greet(on, options);
    in_ceremony_ = true;
    resume_as_scheduler(on, options);
  }
  in_ceremony_ = false;
  on.is_ready = true;
}

void Player::resume_as_worker(Link& on, const json::object& options) {
  const json::object payload = merged(variables().at("resume").as_object(), options, "resume");
  json::object frame{{"type", "control.resume"}, {"payload", payload}};
  if (revision_ == 1) frame["ack"] = {{"request", true}};
  send(on, filled(std::move(frame)));
  const json::object accept =
      expect_frame(on, json::object{{"type", "control.session.accept"}, {"payload", {{"resumed", true}}}},
                   kCeremonyWithin);
  take_accept(on, accept, options);
  replay(on, accept.at("payload").as_object().if_contains("last_seen_seq"));
}

void Player::resume_as_scheduler(Link& on, const json::object& options) {
  json::object wanted = options_for(options, "resume");
  if (!wanted.contains("session_id")) wanted["session_id"] = variables_.at("session_id");
  if (!wanted.contains("session_token")) wanted["session_token"] = variables_.at("session_token");
  const json::object frame =
      expect_frame(on, json::object{{"type", "control.resume"}, {"payload", wanted}}, kCeremonyWithin);
  variables_["resume_seen"] = frame.at("payload");
  if (revision_ == 1) send_ack(on, {{"ok", true}}, member_text(frame, "id"));
  send_accept(on, true, options);
  replay(on, frame.at("payload").as_object().if_contains("last_seen_seq"));
}

// Revision 1's accept does not say what was seen: everything kept is sent again.
void Player::replay(Link& on, const json::value* last_seen) {
  if (!case_.auto_replay) return;
  const bool knows = last_seen != nullptr && last_seen->is_number();
  for (const auto& [seq, frame] : std::map{streams_.sent}) {
    if (!knows || static_cast<std::int64_t>(seq) > last_seen->to_number<std::int64_t>())
      transmit(on, frame, nullptr);
  }
}

}  // namespace windlass::conformance
