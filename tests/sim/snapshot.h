// What of a session must not change by what an old connection says, and the bounds it must keep.
#pragma once

#include <cstdint>
#include <string>

#include "protocol/session/session.h"
#include "tests/sim/context.h"
#include "tests/sim/session_record.h"

namespace windlass::sim {

struct Snapshot {
  std::string session;
  Seq received_next = 0;
  Seq owned_next = 0;
  Seq earliest_retained = 0;
  Seq next_seq = 0;
  std::uint32_t credit = 0;
  Instant last_heard{};
  bool is_connected = false;
  bool is_ended = false;
  bool is_draining = false;
  friend bool operator==(const Snapshot&, const Snapshot&) = default;
};

inline Snapshot snapshot_of(const Session* session) {
  if (session == nullptr) return {};
  const Stream& stream = session->stream();
  return {.session = session->identity().session_id,
          .received_next = stream.receive_window().received_next(),
          .owned_next = stream.receive_window().owned_next(),
          .earliest_retained = stream.send_window().earliest_retained(),
          .next_seq = stream.send_window().next_seq(),
          .credit = stream.send_window().frames_credit(),
          .last_heard = session->last_heard(),
          .is_connected = session->is_connected(),
          .is_ended = session->is_ended(),
          .is_draining = session->is_draining()};
}

// A sender that was refused for want of credit asks for it, at the latest after the longest interval.
// `since`: from when on it could.
//= WIN-11
inline void check_probes(Context& context, const std::string& machine, const Session& session,
                         Duration since) {
  constexpr Duration kQuietMax = seconds{9};
  if (!session.is_connected() || session.is_ended() || session.identity().revision == Revision::One) return;
  if (context.now() - since > kQuietMax) {
    context.fail("blocked-asks-again", machine, " waits for credit and has not asked for ",
                 context.now() - since);
  }
}

inline void check_session(Context& context, const std::string& machine, const Session& session,
                          const Unowned& unowned) {
  const SendWindow& send = session.stream().send_window();
  const ReceiveWindow& receive = session.stream().receive_window();
  if (send.in_flight() > limits::kWindowFramesMax) {
    context.fail("memory-is-bounded", machine, " keeps ", send.in_flight(), " unacknowledged frames");
  }
  if (receive.received_next() - receive.owned_next() > receive.frames_open()) {
    context.fail("memory-is-bounded", machine, " holds more frames than it offered to");
  }
  // Of one frame alone the byte window asks nothing.
  //= WIN-7
  if (unowned.frames > 1 && unowned.bytes > receive.credit().bytes) {
    context.fail("memory-is-bounded", machine, " holds ", unowned.bytes, " bytes in ", unowned.frames,
                 " frames and offered to hold ", receive.credit().bytes);
  }
  //= LIV-4
  if (session.is_connected() && session.liveness() == Liveness::Lost) {
    context.fail("lost-is-given-up", machine,
                 " keeps a connection on which it has heard nothing for too long");
  }
}

}  // namespace windlass::sim
