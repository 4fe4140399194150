// What happens to sessions, as one loop tells it to operators: counted and logged. Decides nothing.
#pragma once

#include <string>

#include "protocol/adapters/connection_events.h"
#include "protocol/session/scheduler_endpoint.h"
#include "scheduler/adapters/metrics.h"
#include "scheduler/core/effects.h"
#include "scheduler/shell/peer_log.h"

namespace windlass {

// Whom an event is about.
struct ReportedPeer {
  std::string_view tenant;
  std::string_view instance;
  std::string_view session_id = {};
  std::string_view address = {};
};

class SessionReport final {
 public:
  // Both must outlive the report.
  SessionReport(Metrics& metrics, JsonLog* log) : metrics_(metrics), log_(log) {}

  // Most events are of single frames and say nothing here: whoever has to look up the peer asks first.
  bool wants(const SessionEvent& event) const;
  void tell(const ReportedPeer& peer, const SessionEvent& event, Instant now);
  void tell_moved(const ReportedPeer& peer, Instant now);
  void tell_refused(const Refusal& refusal, std::string_view address, Instant now);
  void tell_closed(const ReportedPeer& peer, const CloseFacts& facts, Instant now);
  void tell_sent(const ReportedPeer& peer, const CommandKey& command, std::string_view type, Seq seq,
                 Instant now);
  bool wants_sent() const { return log_.takes(PeerNews::CommandSent); }
  void count(const EndpointCounters& counters);

 private:
  void tell_established(PeerLine line, const Established& established, Instant now);
  void tell_refused_frame(PeerLine line, const Refused& refused, Instant now);
  void tell_ended(PeerLine line, const Ended& ended, Instant now);

  Metrics& metrics_;
  PeerLog log_;
  EndpointCounters counted_;
};

// What the core says of commands and messages; on the control's thread.
class CoreReport final {
 public:
  CoreReport(Metrics& metrics, JsonLog* log) : metrics_(metrics), log_(log) {}
  void tell(const CoreEvent& event, Instant now);

 private:
  void tell(const Dispatched& dispatched, Instant now);
  void tell(const Finished& finished, Instant now);
  void tell(const FrameIgnored& ignored, Instant now);
  void tell(const MessageStored& stored, Instant now);
  void tell(const MessageDropped& dropped, Instant now);
  void tell(const ShortageChanged& changed, Instant now);
  void tell(const PackageRequested& asked, Instant now);
  // The control's, which knows more of them.
  void tell(const AssignmentChanged&, Instant) {}
  void tell(const RolloutStopped&, Instant) {}
  void tell(const RuntimeSignalled&, Instant) {}
  void tell(const RuntimeAddressRefused&, Instant) {}
  void tell(const PackageUnused&, Instant) {}
  void tell(const WorkerResumed&, Instant) {}

  Metrics& metrics_;
  PeerLog log_;
};

}  // namespace windlass
