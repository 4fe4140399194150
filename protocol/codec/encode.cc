#include "protocol/codec/encode.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "protocol/base/check.h"
#include "protocol/base/limits.h"
#include "protocol/codec/json_writer.h"

namespace windlass {
namespace {

using codec::JsonWriter;

std::uint64_t to_ms(Duration value) {
  return static_cast<std::uint64_t>(
      std::max<milliseconds::rep>(0, std::chrono::duration_cast<milliseconds>(value).count()));
}

std::string_view to_string(AuthMode mode) {
  return mode == AuthMode::Token ? "token" : "mtls";
}

std::string_view to_string(PackageStatus status) {
  switch (status) {
    case PackageStatus::Installed:
      return "installed";
    case PackageStatus::Missing:
      return "missing";
    case PackageStatus::Failed:
      return "failed";
  }
  return "";
}

// Writes one payload's members.
class PayloadWriter {
 public:
  PayloadWriter(JsonWriter& json, Revision revision) : json_(json), revision_(revision) {}

  void operator()(const Handshake& body) const;
  void operator()(const Register& body) const;
  void operator()(const SessionAccept& body) const;
  void operator()(const Resume& body) const;
  void operator()(const Reset& body) const;
  void operator()(const Drain& body) const;
  void operator()(const Ack& body) const;
  void operator()(const Heartbeat& body) const;
  void operator()(const UnknownControl&) const {}
  void operator()(const Data&) const {}

 private:
  bool is_two() const { return revision_ == Revision::Two; }
  template <std::size_t N>
  void list(const char (&name)[N], const std::vector<std::string_view>& values) const {
    json_.begin_list(name);
    for (const std::string_view value : values) json_.item(value);
    json_.end_list();
  }
  void credit(const Credit& credit) const;
  void ack_state(const AckState& state) const;

  JsonWriter& json_;
  Revision revision_;
};

//= REV-4
JsonWriter::TimeStyle time_style(Revision revision) {
  return revision == Revision::Two ? JsonWriter::TimeStyle::MillisecondsZ
                                   : JsonWriter::TimeStyle::MicrosecondsOffset;
}

void write_envelope(const Frame& frame, Revision revision, std::string& out) {
  JsonWriter json{out};
  const bool two = revision == Revision::Two;
  const Data* data = std::get_if<Data>(&frame.body);
  json.begin();
  json.text("type", type_of(frame));
  json.text("id", frame.id);
  json.time("ts", frame.ts, time_style(revision));
  json.text_if_any("corr", frame.corr);
  if (data != nullptr) {
    CHECK(frame.seq.has_value());
    if (two) {
      json.integer("seq", *frame.seq);
    } else {
      //= REV-1
      json.integer("session_seq", *frame.seq + 1);
    }
  }
  json.text("tenant", frame.tenant);
  json.begin("sender");
  const bool speaks_as_scheduler = !two && frame.sender_role == Role::Runtime;
  json.text("role", to_string(speaks_as_scheduler ? Role::Scheduler : frame.sender_role));
  json.text("id", frame.sender_id);
  json.end();
  if (!frame.ack_for.empty() || frame.ack_request) {
    json.begin("ack");
    json.text_if_any("for", frame.ack_for);
    if (frame.ack_request) json.boolean("request", true);
    json.end();
  }
  if (!frame.flags.empty()) {
    json.begin_list("flags");
    for (const std::string_view flag : frame.flags) json.item(flag);
    json.end_list();
  }
  //= ENV-9, REV-3
  if (two && !frame.ext.empty()) json.raw("ext", frame.ext);
  if (data != nullptr) {
    if (data->attachment && two) {
      json.begin("attachment");
      json.integer("bytes", data->attachment->bytes.size());
      json.text("type", data->attachment->type);
      json.end();
    }
    json.raw("payload", data->payload);
  } else {
    json.begin("payload");
    std::visit(PayloadWriter{json, revision}, frame.body);
    json.end();
  }
  json.end();
  json.finish();
}

void PayloadWriter::operator()(const Handshake& body) const {
  json_.integer("protocol", body.protocol);
  json_.begin("auth");
  json_.text("mode", to_string(body.mode));
  json_.text_if_any("token", body.token);
  json_.text_if_any("fingerprint", body.fingerprint);
  json_.end();
  json_.begin("worker");
  json_.text("worker_name", body.worker_name);
  json_.text_if_any("worker_instance_id", body.worker_instance_id);
  json_.text("version", body.version);
  json_.text("hostname", body.hostname);
  json_.end();
}

void PayloadWriter::operator()(const Register& body) const {
  json_.begin("capabilities");
  json_.begin("concurrency");
  json_.integer("max_parallel", body.max_parallel);
  if (!body.per_node_limits.empty()) json_.raw("per_node_limits", body.per_node_limits);
  json_.end();
  list("runtimes", body.runtimes);
  list("features", body.features);
  json_.end();
  list("payload_types", body.payload_types);
  json_.begin_list("packages");
  for (const Register::Package& package : body.packages) {
    json_.begin();
    json_.text("name", package.name);
    json_.text("version", package.version);
    json_.text("status", to_string(package.status));
    json_.end();
  }
  json_.end_list();
  list("channels", body.channels);
  json_.begin_list("manifests");
  for (const Register::Manifest& manifest : body.manifests) {
    json_.begin();
    json_.text("name", manifest.name);
    json_.text("version", manifest.version);
    json_.raw("manifest", manifest.manifest);
    json_.end();
  }
  json_.end_list();
}

void PayloadWriter::operator()(const SessionAccept& body) const {
  json_.text("session_id", body.session_id);
  json_.text("session_token", body.session_token);
  json_.text("worker_instance_id", body.worker_instance_id);
  if (body.expires_at) json_.time("expires_at", *body.expires_at, time_style(revision_));
  json_.boolean("resumed", body.resumed);
  if (!is_two()) return;
  if (body.received_next != 0) json_.integer("last_seen_seq", body.received_next - 1);
  json_.integer("earliest_retained_seq", body.earliest_retained);
  credit(body.credit);
  json_.integer("heartbeat_interval_ms", to_ms(body.heartbeat_interval));
  json_.integer("resume_ttl_ms", to_ms(body.resume_ttl));
  json_.integer("frame_bytes_max", body.frame_bytes_max);
}

void PayloadWriter::operator()(const Resume& body) const {
  json_.text("session_id", body.session_id);
  json_.text("session_token", body.session_token);
  if (!is_two()) {
    json_.integer("last_seen_seq", body.received_next);
    return;
  }
  if (body.received_next != 0) json_.integer("last_seen_seq", body.received_next - 1);
  json_.integer("earliest_retained_seq", body.earliest_retained);
  credit(body.credit);
}

void PayloadWriter::operator()(const Reset& body) const {
  json_.text("code", body.code);
  json_.text("reason", body.reason);
  if (body.retry_after) json_.integer("retry_after_ms", to_ms(*body.retry_after));
}

void PayloadWriter::operator()(const Drain& body) const {
  if (is_two()) json_.text("phase", body.phase == DrainPhase::Start ? "start" : "complete");
  json_.text_if_any("reason", body.reason);
  if (body.deadline) json_.integer("deadline_ms", to_ms(*body.deadline));
}

void PayloadWriter::operator()(const Ack& body) const {
  json_.boolean("ok", body.ok);
  json_.text_if_any("for", body.for_id);
  json_.text_if_any("info", body.info);
  if (body.state) ack_state(*body.state);
}

void PayloadWriter::operator()(const Heartbeat& body) const {
  json_.boolean("healthy", body.healthy);
  if (!body.metrics.empty()) {
    json_.raw("metrics", body.metrics);
  } else {
    json_.begin("metrics");
    json_.integer("inflight", body.inflight);
    if (body.cpu_pct) json_.number("cpu_pct", *body.cpu_pct);
    if (body.mem_pct) json_.number("mem_pct", *body.mem_pct);
    if (body.disk_pct) json_.number("disk_pct", *body.disk_pct);
    if (body.latency_ms) json_.number("latency_ms", *body.latency_ms);
    json_.end();
  }
  if (body.packages_drift) {
    json_.begin("packages");
    json_.boolean("drift", *body.packages_drift);
    json_.end();
  }
}

void PayloadWriter::credit(const Credit& credit) const {
  json_.integer("recv_window", credit.frames);
  json_.integer("recv_window_bytes", credit.bytes);
}

void PayloadWriter::ack_state(const AckState& state) const {
  if (!is_two()) {
    //= REV-2
    json_.integer("ack_seq", state.owned_next);
    json_.integer("ack_bitmap", state.held.word(0));
    json_.integer("recv_window", std::clamp(state.credit.frames, 1U, limits::kWindowFramesRevision1Max));
    return;
  }
  if (state.owned_next != 0) json_.integer("ack_seq", state.owned_next - 1);
  //= ACK-2
  if (!state.held.empty()) {
    static constexpr char kHex[] = "0123456789abcdef";
    std::array<char, AckBitmap::kBitsMax / 4> text;
    const std::size_t count = (state.held.bit_length() + 3) / 4;
    for (std::size_t i = 0; i < count; ++i) {
      text[count - 1 - i] = kHex[(state.held.word(i / 16) >> (i % 16 * 4)) & 0xfU];
    }
    json_.text("ack_bitmap", {text.data(), count});
  }
  credit(state.credit);
  if (state.dup != 0) json_.integer("dup", state.dup);
}

}  // namespace

MessageKind encode(const Frame& frame, Revision revision, std::string& out) {
  const Data* data = std::get_if<Data>(&frame.body);
  if (data == nullptr || !data->attachment || revision == Revision::One) {
    //= TRN-1
    write_envelope(frame, revision, out);
    return MessageKind::Text;
  }
  //= ATT-1
  const std::size_t begin = out.size();
  out.append(kEnvelopeLengthBytes, '\0');
  write_envelope(frame, revision, out);
  const std::size_t length = out.size() - begin - kEnvelopeLengthBytes;
  for (std::size_t i = 0; i < kEnvelopeLengthBytes; ++i) {
    out[begin + i] = static_cast<char>(length >> (8 * (kEnvelopeLengthBytes - 1 - i)));
  }
  out.append(data->attachment->bytes);
  return MessageKind::Binary;
}

}  // namespace windlass
