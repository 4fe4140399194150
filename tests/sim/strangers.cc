#include "tests/sim/strangers.h"

#include "protocol/base/limits.h"
#include "protocol/codec/encode.h"
#include "protocol/websocket/writer.h"

namespace windlass::sim {
namespace {

// An answer comes back for each, and a few frames that are no answer.
constexpr int kViolationsMax = static_cast<int>(limits::kErrorBudget) + 20;

constexpr std::uint64_t kHabits = 6;
constexpr std::uint64_t kOverruns = 5;  // more bytes than were offered
constexpr Seq kOverrunFramesMax = 60;

}  // namespace

void Stranger::connect() {
  socket_ = &network_.connect_stranger({.split_percent = 30}, *this);
  context_.timeline.after(context_.random.below(Duration{seconds{15}}), [this] {
    if (socket_ != nullptr) network_.abandon(*socket_, context_.chance(70));
    socket_ = nullptr;
  });
}

void Stranger::use(const StolenToken& stolen, std::string_view bearer) {
  connect();
  stolen_ = stolen;
  revision_ = stolen.revision;
  instance_ = stolen.instance;
  context_.note("a thief uses a replaced token of ", instance_);
  send_handshake(static_cast<std::uint64_t>(revision_), bearer);
}

void Stranger::resume() {
  Frame made = frame();
  made.ack_request = true;
  made.body = Resume{stolen_->session, stolen_->token, 0, 0, {16, 1000}};
  say(made);
}

bool Stranger::is_accept(BytesView message) const {
  return message.find(R"("type":"control.session.accept")") != BytesView::npos;
}

void Stranger::attack() {
  connect();
  switch (context_.random.below(12)) {
    case 0:
      return socket_->send_raw(noise(3000));
    case 1:
      return say_text(noise(300));
    case 2:
      tenant_ = "evil";
      return send_handshake(2, "let-me-in");
    case 3:  // somebody else's identity
      instance_ = "i-1";
      return send_handshake(2, "wrong");
    case 4: {
      Frame data = frame();
      data.seq = 0;
      data.body = Data{"biz.event", "{}", {}};
      return say(data);
    }
    case 5:
      return say_text(std::string(limits::kFrameBytesBeforeAuthMax + 1 + context_.random.below(9000), 'x'));
    case 6:
      return send_handshake(3 + context_.random.below(5), "let-me-in");
    case 7: {
      Frame resume = frame();
      resume.sender_id = "i-1";
      resume.body = Resume{"s-1", "bm90.YXRva2Vu", 3, 0, {16, 1000}};
      revision_ = Revision::One;
      return say(resume);
    }
    case 8:
      return;  // says nothing at all
    case 9:    // half a handshake: authenticated, then silent
      return send_handshake(2, "let-me-in");
    case 10:
      habit_ = kOverruns;
      [[fallthrough]];
    default:
      registers_ = true;
      return send_handshake(2, "let-me-in");
  }
}

void Stranger::on_message(Socket&, BytesView message, MessageKind) {
  if (stolen_) {
    //= FEN-4
    if (is_accept(message))
      context_.fail("replaced-token-is-refused", "a thief resumed a session of ", instance_);
    if (++answers_ == 1) resume();
    return;
  }
  if (!registers_ || socket_ == nullptr) return;
  if (++answers_ == 1) {
    Frame hello = frame();
    hello.ack_request = true;
    Register body;
    body.runtimes = {"native"};
    hello.body = body;
    return say(hello);
  }
  if (!habit_) habit_ = context_.random.below(kHabits);
  if (*habit_ == kOverruns) return overrun();
  //= LIM-2
  if (++violations_ > kViolationsMax) {
    return context_.fail("error-budget", "a stranger made ", violations_, " mistakes and is still answered");
  }
  misbehave();
}

// An accepted session that breaks one rule again and again, until its error budget is spent.
void Stranger::misbehave() {
  Frame bad = frame();
  switch (*habit_) {
    case 0:
      return say_text(noise(200));
    case 1:  // beyond any window
      bad.seq = 100'000 + context_.random.below(1000);
      bad.body = Data{"biz.event", "{}", {}};
      return say(bad);
    case 2:
      bad.body = Drain{DrainPhase::Complete, {}, {}};
      return say(bad);
    case 3:
      return say_text(R"({"type":"control.heartbeat","id":"x","payload":{}})");
    default:
      bad.body = Resume{"s-1", "bm90.YXRva2Vu", 3, 0, {16, 1000}};
      return say(bad);
  }
}

// Frames in order, of which some fit the window and the others do not, without waiting for credit.
void Stranger::overrun() {
  for (int i = 0; i < 12 && next_seq_ < kOverrunFramesMax; ++i) {
    const std::string id = "s" + std::to_string(next_seq_);
    const std::string payload = R"({"much":")" + std::string(context_.random.below(3000), 'm') + "\"}";
    Frame much = frame();
    much.id = id;
    much.seq = next_seq_++;
    much.body = Data{"biz.event", payload, {}};
    say(much);
  }
}

void Stranger::send_handshake(std::uint64_t protocol, std::string_view bearer) {
  Frame hello = frame();
  hello.ack_request = true;
  Handshake body;
  body.protocol = protocol;
  body.token = bearer;
  body.worker_name = "stranger";
  body.worker_instance_id = instance_;
  body.version = "1";
  body.hostname = "nowhere";
  hello.body = body;
  say(hello);
}

Frame Stranger::frame() {
  Frame made;
  made.id = "s";
  made.tenant = tenant_;
  made.sender_role = Role::Worker;
  made.sender_id = instance_;
  return made;
}

void Stranger::say(const Frame& frame) {
  Bytes message;
  encode(frame, revision_, message);
  say_text(message);
}

void Stranger::say_text(std::string_view text) {
  Bytes framed;
  const auto key = websocket::MaskKey::from(static_cast<std::uint32_t>(context_.random.next()));
  websocket::append_text(text, key, framed);
  if (socket_ != nullptr) socket_->send_raw(std::move(framed));
}

std::string Stranger::noise(std::size_t bytes_max) {
  std::string bytes(1 + context_.random.below(bytes_max), ' ');
  for (char& c : bytes) c = static_cast<char>(context_.random.below(256));
  return bytes;
}

}  // namespace windlass::sim
