#include "tests/bench/session_protocol.h"

#include <charconv>

#include "protocol/base/big_endian.h"
#include "protocol/base/check.h"
#include "protocol/websocket/upgrade.h"
#include "protocol/websocket/writer.h"

namespace windlass::bench {
namespace {

constexpr std::string_view kAck = R"({"type":"control.ack")";
constexpr std::string_view kAccept = R"({"type":"control.session.accept")";
constexpr std::string_view kReset = R"({"type":"control.reset")";
constexpr std::string_view kBusiness = R"({"type":"biz.)";
constexpr std::string_view kTimeAndTenant = R"(","ts":"2026-11-16T08:00:00.000Z","tenant":")";

constexpr std::uint64_t kAckedTogether = 64;  // a quarter of the window, if nothing is sent before

void append_number(Bytes& out, std::uint64_t number) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, end);
}

class SessionProtocol final : public LoadProtocol {
 public:
  explicit SessionProtocol(SessionLoadOptions options) : options_(std::move(options)) {
    sender_ = std::string{kTimeAndTenant} + options_.tenant + R"(","sender":{"role":"worker","id":")" +
              options_.instance + R"("})";
    const std::size_t envelope = options_.type.size() + sender_.size() + 60;
    CHECK(options_.frame_bytes > envelope);
    filler_ = std::string(options_.frame_bytes - envelope, 'x');
  }

  void begin(Bytes& out) override {
    out += *websocket::upgrade_request({"127.0.0.1", options_.path}, websocket::UpgradeNonce{});
  }
  bool is_ready() const override { return stage_ == Stage::Ready; }

  void append_messages(std::size_t count, Bytes& out) override {
    if (received_ > told_) append_ack(out);
    for (std::size_t i = 0; i < count; ++i, ++sent_) {
      begin_text(options_.type, sent_);
      text_ += R"(,"seq":)";
      append_number(text_, sent_);
      text_ += R"(,"payload":{"text":")";
      text_ += filler_;
      text_ += R"("}})";
      send_text(out);
    }
  }

  void settle(Bytes& out) override {
    if (received_ > told_) append_ack(out);
  }

  std::size_t receive(std::string_view bytes, Bytes& out) override {
    const std::uint64_t received = received_;
    const std::uint64_t acked = acked_;
    if (!rest_.empty()) {
      rest_ += bytes;
      bytes = rest_;
    }
    std::string_view left = stage_ == Stage::Head ? after_head(bytes, out) : bytes;
    while (const auto message = next_message(left)) handle(*message, out);
    Bytes rest{left};
    rest_ = std::move(rest);
    if (received_ - told_ >= (options_.acks_at_once ? 1 : kAckedTogether)) append_ack(out);
    if (options_.completes_commands) return 0;  // what it sends is nobody's load
    return options_.answer == SessionLoadOptions::Answer::Frame ? received_ - received : acked_ - acked;
  }

 private:
  enum class Stage : std::uint8_t { Head, Handshake, Register, Ready };

  // A frame's type, id, time and sender; open for more members.
  void begin_text(std::string_view type, std::uint64_t number) {
    text_ = R"({"type":")";
    text_ += type;
    text_ += R"(","id":"m)";
    append_number(text_, number);
    text_ += sender_;
  }
  void send_text(Bytes& out) { websocket::append_text(text_, websocket::MaskKey::from(0x12345678), out); }

  std::string_view after_head(std::string_view bytes, Bytes& out) {
    const std::size_t end = bytes.find("\r\n\r\n");
    if (end == std::string_view::npos) return bytes;
    CHECK(bytes.starts_with("HTTP/1.1 101"));
    stage_ = Stage::Handshake;
    begin_text("control.handshake", 0);
    text_ += R"(,"payload":{"protocol":2,"auth":{"mode":"token","token":")" + options_.token +
             R"("},"worker":{"worker_name":"load","worker_instance_id":")" + options_.instance +
             R"(","version":"1","hostname":"h"}},"ack":{"request":true}})";
    send_text(out);
    return bytes.substr(end + 4);
  }

  // Whole, unfragmented frames of a server.
  static std::optional<std::string_view> next_message(std::string_view& left) {
    if (left.size() < 2) return std::nullopt;
    const auto small = static_cast<std::size_t>(left[1]);
    std::size_t head = 2;
    std::size_t length = small;
    if (small >= 126) {
      head = small == 126 ? 4 : 10;
      if (left.size() < head) return std::nullopt;
      length = big_endian(left.substr(2, head - 2));
    }
    if (left.size() < head + length) return std::nullopt;
    const std::string_view message = left.substr(head, length);
    left.remove_prefix(head + length);
    return message;
  }

  void handle(std::string_view message, Bytes& out) {
    if (message.starts_with(kBusiness)) {
      if (number_of(message, R"("seq":)") != received_) return;  // sent again by a timer; all come in order
      ++received_;
      if (options_.completes_commands) append_result(id_of(message), out);
    } else if (message.starts_with(kAck)) {
      handle_ack(message, out);
    } else if (message.starts_with(kAccept)) {
      handle_accept(message, out);
    } else if (message.starts_with(kReset)) {
      std::fprintf(stderr, "a load client was reset: %.*s\n", static_cast<int>(message.size()),
                   message.data());
      std::abort();
    }
  }

  static std::string_view id_of(std::string_view message) {
    constexpr std::string_view kId = R"("id":")";
    const std::size_t at = message.find(kId) + kId.size();
    return message.substr(at, message.find('"', at) - at);
  }

  // Of our own encoder, which puts no white space.
  static std::optional<std::uint64_t> number_of(std::string_view message, std::string_view member) {
    const std::size_t at = message.find(member);
    if (at == std::string_view::npos) return std::nullopt;
    std::uint64_t number = 0;
    const char* const digits = message.data() + at + member.size();
    CHECK(std::from_chars(digits, message.data() + message.size(), number).ec == std::errc{});
    return number;
  }

  void append_result(std::string_view command, Bytes& out) {
    begin_text("biz.result", sent_);
    text_ += R"(,"corr":")";
    text_ += command;
    text_ += R"(","seq":)";
    append_number(text_, sent_++);
    text_ += R"(,"payload":{"ok":true}})";
    send_text(out);
  }

  // Proves that it came and announces credit; a rotation of the token is answered alike.
  void handle_accept(std::string_view message, Bytes& out) {
    begin_text("control.ack", received_);
    text_ += R"(,"payload":{"ok":true,"for":")";
    text_ += id_of(message);
    text_ += '"';
    append_credit(out);
    stage_ = Stage::Ready;
  }

  void handle_ack(std::string_view message, Bytes& out) {
    CHECK(message.find(R"("ok":true)") != std::string_view::npos);
    if (stage_ == Stage::Handshake) {
      stage_ = Stage::Register;
      begin_text("control.register", 0);
      text_ += R"(,"payload":{"capabilities":{"concurrency":{"max_parallel":4096},"runtimes":["none"]}}})";
      return send_text(out);
    }
    const auto last = number_of(message, R"("ack_seq":)");
    if (!last) return;
    CHECK(*last < sent_);
    acked_ = *last + 1;
  }

  void append_ack(Bytes& out) {
    told_ = received_;
    begin_text("control.ack", received_);
    text_ += R"(,"payload":{"ok":true)";
    append_credit(out);
  }
  void append_credit(Bytes& out) {
    if (received_ > 0) {
      text_ += R"(,"ack_seq":)";
      append_number(text_, received_ - 1);
    }
    text_ += R"(,"recv_window":256,"recv_window_bytes":8388608}})";
    send_text(out);
  }

  SessionLoadOptions options_;
  std::string sender_;
  std::string filler_;
  Bytes text_;  // one message, before it is framed
  Bytes rest_;  // input that is not a whole frame yet
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;  // business frames
  std::uint64_t told_ = 0;      // of those, acknowledged
  std::uint64_t acked_ = 0;     // of ours
  Stage stage_ = Stage::Head;
};

}  // namespace

std::unique_ptr<LoadProtocol> session_protocol(SessionLoadOptions options) {
  return std::make_unique<SessionProtocol>(std::move(options));
}

}  // namespace windlass::bench
