#include "scheduler/shell/session_report.h"

namespace windlass {
namespace {

// A code of ours as it is, a peer's invention as one value: labels must stay few.
std::string code_label(const std::string& code) {
  return error_code_from(code) || code.empty() ? code : "other";
}

bool is_schema_violation(ErrorCode code) {
  return code == ErrorCode::ProtoJson || code == ErrorCode::ProtoSchema || code == ErrorCode::LimitFrame;
}

std::string_view liveness_name(Liveness level) {
  static constexpr std::string_view kNames[] = {"healthy", "warn", "degraded", "lost"};
  return kNames[static_cast<std::size_t>(level)];
}

std::string_view initiator_name(CloseInitiator initiator) {
  static constexpr std::string_view kNames[] = {"local", "peer", "network"};
  return kNames[static_cast<std::size_t>(initiator)];
}

PeerLine line_of(const ReportedPeer& peer) {
  return {
      .tenant = peer.tenant, .sender_id = peer.instance, .address = peer.address, .session = peer.session_id};
}

PeerLine line_of(const WorkerKey& worker) {
  return {.tenant = worker.tenant.value(), .sender_id = worker.instance.value()};
}

}  // namespace

bool SessionReport::wants(const SessionEvent& event) const {
  if (std::holds_alternative<Delivered>(event)) return log_.takes(PeerNews::MessageCame);
  return !std::holds_alternative<Acknowledged>(event) && !std::holds_alternative<Writable>(event) &&
         !std::holds_alternative<LoadReported>(event);
}

void SessionReport::tell(const ReportedPeer& peer, const SessionEvent& event, Instant now) {
  PeerLine line = line_of(peer);
  if (const auto* established = std::get_if<Established>(&event)) {
    tell_established(line, *established, now);
  } else if (const auto* ended = std::get_if<Ended>(&event)) {
    tell_ended(line, *ended, now);
  } else if (const auto* refused = std::get_if<Refused>(&event)) {
    tell_refused_frame(line, *refused, now);
  } else if (const auto* liveness = std::get_if<LivenessChanged>(&event)) {
    if (liveness->level == Liveness::Healthy) return;
    metrics_.heartbeat_missed(std::string{peer.tenant}, std::string{peer.instance});
    line.reason = liveness_name(liveness->level);
    log_.say(PeerNews::HeartbeatsMissed, line, now);
  } else if (const auto* twin = std::get_if<TwinSuspected>(&event)) {
    metrics_.twin_suspected();
    line.reason = twin->reason;
    log_.say(PeerNews::TwinSuspected, line, now);
  } else if (const auto* drain = std::get_if<DrainRequested>(&event)) {
    line.reason = drain->reason;
    log_.say(PeerNews::SessionDraining, line, now);
  } else if (const auto* delivered = std::get_if<Delivered>(&event)) {
    line.type = delivered->message.type();
    line.id = delivered->message.id();
    line.corr = delivered->message.corr();
    line.seq = delivered->seq;
    log_.say(PeerNews::MessageCame, line, now);
  } else if (std::holds_alternative<Detached>(event)) {
    log_.say(PeerNews::SessionDetached, line, now);
  } else if (std::holds_alternative<ClockJumped>(event)) {
    log_.say(PeerNews::ClockJumped, line, now);
  }
}

void SessionReport::tell_established(PeerLine line, const Established& established, Instant now) {
  metrics_.session_opened(established.resumed ? "resumed" : "new");
  metrics_.worker_seen(std::string{line.tenant}, std::string{line.sender_id});
  metrics_.replayed(established.replayed);
  if (established.resumed) {
    metrics_.resume_answered("resumed");
    line.count = established.replayed;
  }
  log_.say(established.resumed ? PeerNews::SessionResumed : PeerNews::SessionOpened, line, now);
}

void SessionReport::tell_ended(PeerLine line, const Ended& ended, Instant now) {
  metrics_.session_ended(code_label(ended.code));
  line.code = ended.code;
  line.reason = ended.reason;
  line.initiator = ended.initiator == Blame::Peer ? "peer" : "local";
  line.count = ended.returned.size();
  log_.say(ended.code.empty() ? PeerNews::SessionDrained : PeerNews::SessionEnded, line, now);
}

void SessionReport::tell_refused_frame(PeerLine line, const Refused& refused, Instant now) {
  const std::string code{to_string(refused.code)};
  metrics_.refused(code);
  if (!refused.by_peer && is_schema_violation(refused.code)) metrics_.schema_violated(code);
  //= LIM-9
  if (refused.is_quiet) return;
  line.type = refused.frame_type;
  line.id = refused.frame_id;
  line.code = code;
  line.reason = refused.info;
  log_.say(refused.by_peer ? PeerNews::FrameRefusedByPeer : PeerNews::FrameRefused, line, now);
}

void SessionReport::tell_moved(const ReportedPeer& peer, Instant now) {
  metrics_.superseded();
  PeerLine line = line_of(peer);
  line.code = to_string(ErrorCode::SessionSuperseded);
  log_.say(PeerNews::SessionMoved, line, now);
}

void SessionReport::tell_refused(const Refusal& refusal, std::string_view address, Instant now) {
  const std::string code{to_string(refusal.code)};
  if (refusal.was_resume) metrics_.resume_answered(code);
  if (refusal.was_unreadable) metrics_.schema_violated(code);
  log_.say(PeerNews::ConnectionRefused,
           {.tenant = refusal.tenant,
            .sender_id = refusal.sender_id,
            .type = refusal.frame_type,
            .id = refusal.frame_id,
            .code = code,
            .reason = refusal.reason,
            .address = address},
           now);
}

void SessionReport::tell_closed(const ReportedPeer& peer, const CloseFacts& facts, Instant now) {
  metrics_.closed(facts.code, initiator_name(facts.initiator));
  if (!log_.takes(PeerNews::ConnectionClosed)) return;
  const std::string code = std::to_string(facts.code);
  PeerLine line = line_of(peer);
  line.code = code;
  line.reason = facts.reason;
  line.initiator = initiator_name(facts.initiator);
  log_.say(PeerNews::ConnectionClosed, line, now);
}

void SessionReport::tell_sent(const ReportedPeer& peer, const CommandKey& command, std::string_view type,
                              Seq seq, Instant now) {
  PeerLine line = line_of(peer);
  line.type = type;
  line.id = command.id;
  line.seq = seq;
  log_.say(PeerNews::CommandSent, line, now);
}

void SessionReport::count(const EndpointCounters& counters) {
  metrics_.count_frames({counters.duplicates - counted_.duplicates,
                         counters.retransmits - counted_.retransmits,
                         counters.spurious_retransmits - counted_.spurious_retransmits,
                         counters.outside_window - counted_.outside_window});
  counted_ = counters;
}

void CoreReport::tell(const CoreEvent& event, Instant now) {
  std::visit([&](const auto& each) { tell(each, now); }, event);
}

void CoreReport::tell(const Dispatched& dispatched, Instant) {
  metrics_.command_dispatched(dispatched.worker.tenant.value(), dispatched.type);
  if (dispatched.cause == DispatchCause::SessionEnded) metrics_.command_retried("session_ended");
  if (dispatched.cause == DispatchCause::Restarted) metrics_.command_retried("restarted");
  if (dispatched.cause == DispatchCause::WorkerLost) metrics_.command_retried("worker_lost");
}

void CoreReport::tell(const Finished& finished, Instant now) {
  if (!finished.failure) {
    metrics_.result_arrived(finished.worker.tenant.value(), finished.type, finished.latency);
  }
  PeerLine line = line_of(finished.worker);
  line.type = finished.type;
  line.id = finished.command.id;
  line.took_ms = static_cast<std::uint64_t>(finished.latency.count());
  if (finished.failure) line.code = to_string(*finished.failure);
  log_.say(finished.failure ? PeerNews::CommandFailed : PeerNews::CommandDone, line, now);
}

void CoreReport::tell(const FrameIgnored& ignored, Instant now) {
  static constexpr std::string_view kKinds[] = {"result", "late_result", "message", "conflicting_message",
                                                "forgotten_result"};
  const std::string_view kind = kKinds[static_cast<std::size_t>(ignored.why)];
  metrics_.duplicate(kind);
  PeerLine line = line_of(ignored.worker);
  line.id = ignored.id;
  line.corr = ignored.corr;
  line.code = to_string(ErrorCode::ResultDuplicate);
  line.reason = kind;
  log_.say(PeerNews::FrameIgnored, line, now);
}

void CoreReport::tell(const PackageRequested& asked, Instant) {
  metrics_.package_operation(asked.worker.tenant.value(), "fetch", asked.is_allowed);
}

void CoreReport::tell(const ShortageChanged& changed, Instant now) {
  PeerLine line = line_of(changed.worker);
  line.reason = changed.of;
  log_.say(changed.of.empty() ? PeerNews::ShortageOver : PeerNews::ShortageBegan, line, now);
}

void CoreReport::tell(const MessageStored&, Instant) {}  // the session's line says that it came

void CoreReport::tell(const MessageDropped& dropped, Instant now) {
  metrics_.message_dropped();
  PeerLine line = line_of(dropped.worker);
  line.id = dropped.id;
  log_.say(PeerNews::MessageDropped, line, now);
}

}  // namespace windlass
