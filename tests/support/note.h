// A frame copied out of its views, with the fields of every body side by side: what a test keeps of the wire.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "protocol/messages/frame.h"
#include "protocol/session/session.h"

namespace windlass::testing {

struct Note {
  explicit Note(const Frame& frame)
      : type(type_of(frame)),
        id(frame.id),
        ts(frame.ts),
        tenant(frame.tenant),
        sender_role(frame.sender_role),
        sender_id(frame.sender_id),
        corr(frame.corr),
        seq(frame.seq),
        ack_for(frame.ack_for),
        ack_request(frame.ack_request) {
    if (const auto* ack = std::get_if<Ack>(&frame.body)) {
      ok = ack->ok;
      for_id = ack->for_id;
      info = ack->info;
      state = ack->state;
    } else if (const auto* reset = std::get_if<Reset>(&frame.body)) {
      code = reset->code;
      reason = reset->reason;
      retry_after = reset->retry_after;
    } else if (const auto* drain = std::get_if<Drain>(&frame.body)) {
      phase = drain->phase;
      reason = drain->reason;
      deadline = drain->deadline;
    } else if (const auto* accept = std::get_if<SessionAccept>(&frame.body)) {
      session_id = accept->session_id;
      token = accept->session_token;
      resumed = accept->resumed;
      position = {accept->received_next, accept->earliest_retained, accept->credit};
      heartbeat_interval = accept->heartbeat_interval;
      resume_ttl = accept->resume_ttl;
      frame_bytes_max = accept->frame_bytes_max;
    } else if (const auto* resume = std::get_if<Resume>(&frame.body)) {
      session_id = resume->session_id;
      token = resume->session_token;
      position = {resume->received_next, resume->earliest_retained, resume->credit};
    } else if (const auto* heartbeat = std::get_if<Heartbeat>(&frame.body)) {
      inflight = heartbeat->inflight;
    } else if (const auto* handshake = std::get_if<Handshake>(&frame.body)) {
      protocol = handshake->protocol;
      instance_id = handshake->worker_instance_id;
    } else if (const auto* data = std::get_if<Data>(&frame.body)) {
      payload = data->payload;
    }
  }

  std::string type;
  std::string id;
  WallTime ts;
  std::string tenant;
  Role sender_role;
  std::string sender_id;
  std::string corr;
  std::optional<Seq> seq;
  std::string ack_for;
  bool ack_request;

  bool ok = false;  // control.ack
  std::string for_id;
  std::string info;
  std::optional<AckState> state;
  std::string code;  // control.reset
  std::string reason;
  std::optional<Duration> retry_after;
  DrainPhase phase = DrainPhase::Start;  // control.drain
  std::optional<Duration> deadline;
  std::string session_id;  // control.session.accept, control.resume
  std::string token;
  bool resumed = false;
  PeerPosition position;
  Duration heartbeat_interval{};
  Duration resume_ttl{};
  std::uint64_t frame_bytes_max = 0;
  std::uint64_t inflight = 0;  // control.heartbeat
  std::uint64_t protocol = 0;  // control.handshake
  std::string instance_id;
  std::string payload;  // anything else
};

inline std::vector<Note> of_type(const std::vector<Note>& notes, std::string_view type) {
  std::vector<Note> found;
  for (const Note& note : notes) {
    if (note.type == type) found.push_back(note);
  }
  return found;
}

inline std::vector<std::string> types(const std::vector<Note>& notes) {
  std::vector<std::string> found;
  found.reserve(notes.size());
  for (const Note& note : notes) found.push_back(note.type);
  return found;
}

// What a hand-made peer says about the envelope; empty: the usual.
struct Envelope {
  std::string id{};
  std::string tenant{};
  std::string sender_id{};
  std::optional<Role> role{};
  std::string corr{};
  std::optional<Seq> seq{};
  bool ack_request = false;
};

}  // namespace windlass::testing
