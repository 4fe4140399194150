#include "tests/support/frame_equality.h"

#include <algorithm>
#include <variant>

namespace windlass::support {
namespace {

struct Compare {
  std::string operator()(const Handshake& a, const Handshake& b) const {
    if (a.protocol != b.protocol) return "protocol";
    if (a.mode != b.mode || a.token != b.token || a.fingerprint != b.fingerprint) return "auth";
    if (a.worker_name != b.worker_name || a.version != b.version || a.hostname != b.hostname) return "worker";
    return a.worker_instance_id != b.worker_instance_id ? "worker_instance_id" : "";
  }
  std::string operator()(const Register& a, const Register& b) const {
    if (a.max_parallel != b.max_parallel) return "max_parallel";
    if (a.per_node_limits != b.per_node_limits) return "per_node_limits";
    if (a.runtimes != b.runtimes || a.features != b.features) return "capabilities";
    if (a.payload_types != b.payload_types || a.channels != b.channels) return "lists";
    const auto same_package = [](const auto& x, const auto& y) {
      return x.name == y.name && x.version == y.version && x.status == y.status;
    };
    if (!std::equal(a.packages.begin(), a.packages.end(), b.packages.begin(), b.packages.end(),
                    same_package)) {
      return "packages";
    }
    const auto same_manifest = [](const auto& x, const auto& y) {
      return x.name == y.name && x.version == y.version && x.manifest == y.manifest;
    };
    const bool same = std::equal(a.manifests.begin(), a.manifests.end(), b.manifests.begin(),
                                 b.manifests.end(), same_manifest);
    return same ? "" : "manifests";
  }
  std::string operator()(const SessionAccept& a, const SessionAccept& b) const {
    if (a.session_id != b.session_id || a.session_token != b.session_token) return "session";
    if (a.worker_instance_id != b.worker_instance_id) return "worker_instance_id";
    if (a.expires_at != b.expires_at) return "expires_at";
    if (a.resumed != b.resumed) return "resumed";
    if (a.received_next != b.received_next || a.earliest_retained != b.earliest_retained) return "positions";
    if (a.credit != b.credit) return "credit";
    if (a.heartbeat_interval != b.heartbeat_interval || a.resume_ttl != b.resume_ttl) return "intervals";
    return a.frame_bytes_max != b.frame_bytes_max ? "frame_bytes_max" : "";
  }
  std::string operator()(const Resume& a, const Resume& b) const {
    if (a.session_id != b.session_id || a.session_token != b.session_token) return "session";
    if (a.received_next != b.received_next || a.earliest_retained != b.earliest_retained) return "positions";
    return a.credit != b.credit ? "credit" : "";
  }
  std::string operator()(const Reset& a, const Reset& b) const {
    return a.code != b.code || a.reason != b.reason || a.retry_after != b.retry_after ? "reset" : "";
  }
  std::string operator()(const Drain& a, const Drain& b) const {
    return a.phase != b.phase || a.reason != b.reason || a.deadline != b.deadline ? "drain" : "";
  }
  std::string operator()(const Ack& a, const Ack& b) const {
    if (a.ok != b.ok || a.for_id != b.for_id || a.info != b.info) return "ack";
    if (a.state.has_value() != b.state.has_value()) return "state";
    if (!a.state) return "";
    if (a.state->owned_next != b.state->owned_next) return "owned_next";
    if (!(a.state->held == b.state->held)) return "held";
    return a.state->credit != b.state->credit || a.state->dup != b.state->dup ? "credit" : "";
  }
  std::string operator()(const Heartbeat& a, const Heartbeat& b) const {
    if (a.healthy != b.healthy || a.inflight != b.inflight) return "heartbeat";
    if (a.cpu_pct != b.cpu_pct || a.mem_pct != b.mem_pct || a.disk_pct != b.disk_pct) return "percent";
    if (a.latency_ms != b.latency_ms) return "latency_ms";
    if (!a.metrics.empty() && a.metrics != b.metrics) return "metrics";
    return a.packages_drift != b.packages_drift ? "packages_drift" : "";
  }
  std::string operator()(const UnknownControl& a, const UnknownControl& b) const {
    return a.type != b.type ? "type" : "";
  }
  std::string operator()(const Data& a, const Data& b) const {
    if (a.type != b.type || a.payload != b.payload) return "payload";
    if (a.attachment.has_value() != b.attachment.has_value()) return "attachment";
    if (!a.attachment) return "";
    return a.attachment->type != b.attachment->type || a.attachment->bytes != b.attachment->bytes ? "bytes"
                                                                                                  : "";
  }
  template <class A, class B>
  std::string operator()(const A&, const B&) const {
    return "kind of body";
  }
};

}  // namespace

std::string difference(const Frame& a, const Frame& b) {
  if (a.id != b.id || a.corr != b.corr) return "id";
  if (a.ts != b.ts) return "ts";
  if (a.tenant != b.tenant || a.sender_role != b.sender_role || a.sender_id != b.sender_id) return "sender";
  if (a.seq != b.seq) return "seq";
  if (a.ack_for != b.ack_for || a.ack_request != b.ack_request) return "ack";
  if (a.flags != b.flags || a.ext != b.ext) return "flags or ext";
  return std::visit(Compare{}, a.body, b.body);
}

}  // namespace windlass::support
