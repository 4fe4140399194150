// The one loop of a scheduler's sessions: transports <-> codec <-> endpoint <-> alarm. See worker_driver.h
// for the shape of a turn.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "protocol/base/bytes.h"
#include "protocol/base/id_map.h"
#include "protocol/codec/decode.h"
#include "protocol/seams/alarm.h"
#include "protocol/seams/clock.h"
#include "protocol/seams/transport.h"
#include "protocol/session/scheduler_endpoint.h"

namespace windlass {

class SchedulerDriver final {
 public:
  // Everything given by reference must outlive the driver. The decoder may be shared by one loop's drivers.
  SchedulerDriver(SchedulerEndpoint& endpoint, Decoder& decoder, const Clock& clock, Alarm& alarm);

  // From the adapters. A transport must live until its on_closed.
  void on_opened(ConnectionId id, Transport& transport, PeerFacts peer);
  void on_message(ConnectionId id, BytesView message, MessageKind kind);
  void on_blocked(ConnectionId id);
  void on_writable(ConnectionId id);
  void on_closed(ConnectionId id);
  void on_alarm();
  // Nothing else of this connection waits to be read: acknowledge what could wait.
  void on_idle(ConnectionId id) { endpoint_.handle_idle(id); }

  // The end of a turn.
  void flush();

  [[nodiscard]] std::optional<OwnerEvent> poll_event() { return endpoint_.poll_event(); }
  SchedulerEndpoint& endpoint() { return endpoint_; }
  Now now() const { return clock_.now(); }

 private:
  SchedulerEndpoint& endpoint_;
  Decoder& decoder_;
  const Clock& clock_;
  Alarm& alarm_;
  IdMap<ConnectionId, Transport*> transports_;
  std::string buffer_;
};

}  // namespace windlass
