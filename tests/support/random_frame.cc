#include "tests/support/random_frame.h"

#include <array>
#include <utility>

#include "protocol/base/limits.h"

namespace windlass::support {
namespace {

constexpr std::uint64_t kIntervalMsMax = 31'536'000'000;

}  // namespace

RandomFrame::RandomFrame(std::uint64_t seed, Revision revision) : random_(seed), revision_(revision) {
  frame_.id = id();
  frame_.ts = WallTime{milliseconds{static_cast<milliseconds::rep>(random_.below(4'102'444'800'000))}};
  frame_.tenant = id(64);
  frame_.sender_role = static_cast<Role>(random_.below(is_two() ? 3 : 2));
  frame_.sender_id = id();
  frame_.corr = maybe(id());
  frame_.ack_for = maybe(id());
  frame_.ack_request = coin();
  if (random_.one_in(4)) {
    for (std::uint64_t i = random_.below(limits::kFlagsMax + 1); i > 0; --i) frame_.flags.push_back(id(64));
  }
  if (is_two() && random_.one_in(4)) frame_.ext = json_object();
  frame_.body = body();
  if (frame_.is_data()) frame_.seq = number(limits::kIntegerMax - 1);
}

FrameBody RandomFrame::body() {
  switch (random_.below(10)) {
    case 0:
      return handshake();
    case 1:
      return registration();
    case 2:
      return accept();
    case 3:
      return resume();
    case 4:
      return Reset{coin() ? "E.TIMEOUT" : "E.SESSION.STALE_BINDING", text(limits::kReasonBytesMax),
                   coin() ? std::optional{interval()} : std::nullopt};
    case 5:
      return Drain{is_two() && coin() ? DrainPhase::Complete : DrainPhase::Start,
                   text(limits::kReasonBytesMax), coin() ? std::optional{interval()} : std::nullopt};
    case 6:
      return ack();
    case 7:
      return heartbeat();
    default:
      return data();
  }
}

Handshake RandomFrame::handshake() {
  Handshake out;
  out.protocol = is_two() ? 2 + number(limits::kIntegerMax - 2) : 1;
  out.mode = coin() ? AuthMode::Token : AuthMode::Mtls;
  out.token = maybe(text(limits::kTokenBytesMax));
  out.fingerprint = maybe(text(limits::kNameBytesMax));
  out.worker_name = text(limits::kNameBytesMax);
  out.worker_instance_id = is_two() ? id() : maybe(id());
  out.version = text(limits::kNameBytesMax);
  out.hostname = text(limits::kNameBytesMax);
  return out;
}

Register RandomFrame::registration() {
  Register out;
  const auto list = [this](std::uint64_t least) {
    std::vector<std::string_view> values;
    const std::uint64_t size = random_.one_in(8) ? limits::kCapabilitiesMax : least + random_.below(4);
    for (std::uint64_t i = 0; i < size; ++i) values.push_back(text(8));
    return values;
  };
  out.max_parallel = static_cast<std::uint32_t>(1 + number(UINT32_MAX - 1));
  if (coin()) out.per_node_limits = coin() ? "{}" : R"({"gpu": 1,"é":9007199254740991})";
  out.runtimes = list(1);
  out.features = list(0);
  out.payload_types = list(0);
  out.channels = list(0);
  for (std::uint64_t i = random_.below(4); i > 0; --i) {
    out.packages.push_back(
        {text(limits::kNameBytesMax), text(16), static_cast<PackageStatus>(random_.below(3))});
    out.manifests.push_back({text(16), text(16), json_object()});
  }
  return out;
}

SessionAccept RandomFrame::accept() {
  SessionAccept out;
  out.session_id = id();
  out.session_token = id(limits::kTokenBytesMax);
  out.worker_instance_id = id();
  if (coin()) out.expires_at = WallTime{milliseconds{static_cast<milliseconds::rep>(number(1U << 30U))}};
  out.resumed = coin();
  if (!is_two()) return out;
  out.received_next = number(limits::kIntegerMax);
  out.earliest_retained = number(limits::kIntegerMax);
  out.credit = {static_cast<std::uint32_t>(number(limits::kWindowFramesMax)), number(limits::kIntegerMax)};
  out.heartbeat_interval = interval(1);
  out.resume_ttl = interval();
  out.frame_bytes_max = limits::kFrameBytesLeast + number(limits::kIntegerMax - limits::kFrameBytesLeast);
  return out;
}

Resume RandomFrame::resume() {
  Resume out;
  out.session_id = id();
  out.session_token = id(limits::kTokenBytesMax);
  out.received_next = number(limits::kIntegerMax);
  if (!is_two()) return out;
  out.earliest_retained = number(limits::kIntegerMax);
  out.credit = {static_cast<std::uint32_t>(number(limits::kWindowFramesMax)), number(limits::kIntegerMax)};
  return out;
}

Ack RandomFrame::ack() {
  Ack out{coin(), maybe(id()), maybe(text(limits::kReasonBytesMax)), std::nullopt};
  if (coin()) return out;
  AckState& state = out.state.emplace();
  state.owned_next = number(limits::kIntegerMax);
  const std::uint64_t bits = is_two() ? AckBitmap::kBitsMax : limits::kWindowFramesRevision1Max;
  for (std::uint64_t i = random_.below(6); i > 0; --i) state.held.set(random_.below(coin() ? bits : 64));
  if (is_two()) {
    state.credit = {static_cast<std::uint32_t>(number(limits::kWindowFramesMax)),
                    number(limits::kIntegerMax)};
    state.dup = number(limits::kIntegerMax);
  } else {
    state.credit = {static_cast<std::uint32_t>(1 + number(63)), limits::kIntegerMax};
  }
  return out;
}

Heartbeat RandomFrame::heartbeat() {
  Heartbeat out;
  out.healthy = coin();
  if (coin()) out.packages_drift = coin();
  if (coin()) {
    out.inflight = 3;
    out.cpu_pct = 12.5;
    out.metrics = R"({ "inflight":3,"cpu_pct":1.25e1, "state":"warm" })";
    return out;
  }
  out.inflight = number(limits::kIntegerMax);
  if (coin()) out.cpu_pct = percent();
  if (coin()) out.mem_pct = percent();
  if (coin()) out.disk_pct = percent();
  if (coin()) out.latency_ms = percent() * 1e6;
  return out;
}

Data RandomFrame::data() {
  Data out{coin() ? "biz.job.run" : "ext.acme.x-y_z", json_object(), std::nullopt};
  if (is_two() && random_.one_in(3)) {
    std::string bytes;
    for (std::uint64_t i = random_.below(64); i > 0; --i) bytes += static_cast<char>(random_.below(256));
    out.attachment = Attachment{id(), keep(std::move(bytes))};
  }
  return out;
}

std::uint64_t RandomFrame::number(std::uint64_t most) {
  switch (random_.below(4)) {
    case 0:
      return 0;
    case 1:
      return most;
    default:
      return random_.below(most < UINT64_MAX ? most + 1 : most);
  }
}

Duration RandomFrame::interval(std::uint64_t least_ms) {
  return milliseconds{static_cast<milliseconds::rep>(least_ms + number(kIntervalMsMax - least_ms))};
}

double RandomFrame::percent() {
  if (random_.one_in(8)) return coin() ? 0.0 : 100.0;
  return static_cast<double>(random_.below(1'000'000'007)) / 1e7 * (1.0 - 1e-8);
}

std::string_view RandomFrame::keep(std::string text) {
  return texts_.emplace_back(std::move(text));
}

std::string_view RandomFrame::id(std::size_t characters_max) {
  const std::size_t size = random_.one_in(8) ? characters_max : 1 + random_.below(32);
  std::string out;
  while (out.size() < size) out += static_cast<char>(' ' + random_.below('~' - ' ' + 1));
  return keep(std::move(out));
}

std::string_view RandomFrame::text(std::size_t characters_max) {
  static constexpr std::array<std::string_view, 9> kUnits = {"a",    "Z", "\"", "\\", "\n",
                                                             "\x01", "é", "☃",  "😀"};
  const std::size_t size =
      random_.one_in(8) ? characters_max : random_.below(std::min<std::size_t>(characters_max, 24));
  std::string out;
  for (std::size_t i = 0; i < size; ++i)
    out += random_.one_in(4) ? kUnits[random_.below(kUnits.size())] : "x";
  return keep(std::move(out));
}

std::string_view RandomFrame::json_object() {
  static constexpr std::array<std::string_view, 5> kObjects = {
      "{}", "{ }", R"({"a":[1,2,{"b":null}],"c":"}]"})", "{\"x\" : 1.50,\n\"x\":[ ] }",
      R"({"\u0061":"\ud83d\ude00"})"};
  return kObjects[random_.below(kObjects.size())];
}

}  // namespace windlass::support
