// The one loop of a worker's session: transport <-> codec <-> endpoint <-> alarm. Deterministic: it owns no
// clock, no thread and no socket.
//
// A loop turn is: any number of on_* calls and commands, poll_event until empty, then flush. Everything the
// turn produced leaves in flush, so that the transport can write it at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/base/bytes.h"
#include "protocol/codec/decode.h"
#include "protocol/seams/alarm.h"
#include "protocol/seams/clock.h"
#include "protocol/seams/dialer.h"
#include "protocol/seams/transport.h"
#include "protocol/session/worker_endpoint.h"

namespace windlass {

class WorkerDriver final {
 public:
  // Everything given by reference must outlive the driver. The decoder may be shared by one loop's drivers.
  WorkerDriver(WorkerEndpoint& endpoint, Decoder& decoder, const Clock& clock, Alarm& alarm, Dialer& dialer);

  // From the adapters. A transport must live until its on_closed.
  void on_opened(ConnectionId id, Transport& transport);
  void on_message(ConnectionId id, BytesView message, MessageKind kind);
  void on_blocked(ConnectionId id);
  void on_writable(ConnectionId id);
  void on_closed(ConnectionId id, std::uint16_t code, std::string_view reason);
  void on_put_off(ConnectionId id, std::string_view reason,
                  Duration retry_after);  // instead, of a refused dial
  void on_alarm();

  // The end of a turn. `idle`: nothing else waits to be read, so acknowledge now what could wait.
  void flush(bool idle);

  [[nodiscard]] std::optional<OwnerEvent> poll_event() { return endpoint_.poll_event(); }
  WorkerEndpoint& endpoint() { return endpoint_; }
  Now now() const { return clock_.now(); }

  struct Counters {
    std::uint64_t heartbeats_sent = 0;
    std::uint64_t heartbeats_degraded = 0;  // of those, the ones that said the worker is not healthy
  };
  const Counters& counters() const { return counters_; }

 private:
  void send_all();
  void block();
  void count(const Frame& frame);

  WorkerEndpoint& endpoint_;
  Decoder& decoder_;
  const Clock& clock_;
  Alarm& alarm_;
  Dialer& dialer_;
  Transport* transport_ = nullptr;  // of current_
  ConnectionId current_{0};
  bool blocked_ = false;
  Counters counters_;
  std::string buffer_;
};

}  // namespace windlass
