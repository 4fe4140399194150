#include "protocol/driver/worker_driver.h"

#include <utility>

#include "protocol/codec/encode.h"
#include "protocol/driver/bad_frame.h"

namespace windlass {

WorkerDriver::WorkerDriver(WorkerEndpoint& endpoint, Decoder& decoder, const Clock& clock, Alarm& alarm,
                           Dialer& dialer)
    : endpoint_(endpoint), decoder_(decoder), clock_(clock), alarm_(alarm), dialer_(dialer) {}

void WorkerDriver::on_opened(ConnectionId id, Transport& transport) {
  if (!endpoint_.is_current(id)) return transport.close(kCloseNormal, "abandoned");
  //= LIM-1
  transport.set_message_bytes_max(endpoint_.frame_bytes_max());
  transport_ = &transport;
  current_ = id;
  blocked_ = false;
  endpoint_.handle_opened(id, now());
}

void WorkerDriver::on_message(ConnectionId id, BytesView message, MessageKind kind) {
  const Expect expect = endpoint_.revision() == Revision::One ? Expect::RevisionOne : Expect::RevisionTwo;
  if (const Frame* const frame = decoder_.decode(message, kind, expect)) {
    endpoint_.handle_frame(id, *frame, now());
  } else {
    const std::string info = describe(decoder_.violation());
    endpoint_.handle_bad_frame(id, bad_frame(decoder_.violation(), info), now());
  }
}

void WorkerDriver::on_blocked(ConnectionId id) {
  if (id == current_) block();
}

void WorkerDriver::on_writable(ConnectionId id) {
  if (id != current_) return;
  blocked_ = false;
  endpoint_.set_transport_busy(false, now());
}

void WorkerDriver::on_closed(ConnectionId id, std::uint16_t code, std::string_view reason) {
  if (id == current_) transport_ = nullptr;
  endpoint_.handle_closed(id, code, reason, now());
}

void WorkerDriver::on_put_off(ConnectionId id, std::string_view reason, Duration retry_after) {
  if (id == current_) transport_ = nullptr;
  endpoint_.handle_put_off(id, reason, retry_after, now());
}

void WorkerDriver::on_alarm() {
  endpoint_.handle_timeout(now());
}

void WorkerDriver::flush(bool idle) {
  if (idle) endpoint_.handle_idle();
  send_all();
  if (const auto request = endpoint_.poll_close(now())) {
    if (transport_ != nullptr) transport_->close(request->code, request->reason);
    transport_ = nullptr;
  }
  if (const auto dial = endpoint_.poll_dial(now())) dialer_.dial(*dial);
  alarm_.set(endpoint_.poll_timeout());
}

void WorkerDriver::send_all() {
  // What ends a session is said however slowly the peer reads.
  while (transport_ != nullptr && (!blocked_ || endpoint_.is_closing())) {
    const auto frame = endpoint_.poll_transmit(now());
    if (!frame) return;
    count(*frame);
    buffer_.clear();
    const MessageKind kind = encode(*frame, endpoint_.revision(), buffer_);
    if (transport_->send(buffer_, kind) == SendStatus::Sent) continue;
    block();
  }
}

//= RTX-2
void WorkerDriver::block() {
  if (!std::exchange(blocked_, true)) endpoint_.set_transport_busy(true, now());
}

void WorkerDriver::count(const Frame& frame) {
  const auto* heartbeat = std::get_if<Heartbeat>(&frame.body);
  if (heartbeat == nullptr) return;
  ++counters_.heartbeats_sent;
  if (!heartbeat->healthy) ++counters_.heartbeats_degraded;
}

}  // namespace windlass
