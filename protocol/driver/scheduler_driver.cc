#include "protocol/driver/scheduler_driver.h"

#include <utility>

#include "protocol/base/limits.h"
#include "protocol/codec/encode.h"
#include "protocol/driver/bad_frame.h"

namespace windlass {
namespace {

Expect expected(std::optional<Revision> revision) {
  if (!revision) return Expect::Any;
  return *revision == Revision::One ? Expect::RevisionOne : Expect::RevisionTwo;
}

}  // namespace

SchedulerDriver::SchedulerDriver(SchedulerEndpoint& endpoint, Decoder& decoder, const Clock& clock,
                                 Alarm& alarm)
    : endpoint_(endpoint), decoder_(decoder), clock_(clock), alarm_(alarm) {}

void SchedulerDriver::on_opened(ConnectionId id, Transport& transport, PeerFacts peer) {
  transports_.insert(id, &transport);
  endpoint_.handle_opened(id, std::move(peer), now());
}

void SchedulerDriver::on_message(ConnectionId id, BytesView message, MessageKind kind) {
  const bool is_authenticated = endpoint_.is_authenticated(id);
  //= HSK-12
  //= LIM-1
  //= LIM-10
  const std::size_t bytes_max =
      is_authenticated ? endpoint_.frame_bytes_max() : limits::kFrameBytesBeforeAuthMax;
  if (message.size() > bytes_max) {
    const char* const info = is_authenticated ? "the message is larger than the accept allows"
                                              : "the message is too large before authentication";
    return endpoint_.handle_bad_frame(id, {ErrorCode::LimitFrame, {}, {}, info}, now());
  }
  if (const Frame* const frame = decoder_.decode(message, kind, expected(endpoint_.revision(id)))) {
    endpoint_.handle_frame(id, *frame, now());
  } else {
    const std::string info = describe(decoder_.violation());
    endpoint_.handle_bad_frame(id, bad_frame(decoder_.violation(), info), now());
  }
  if (!is_authenticated && endpoint_.is_authenticated(id)) {
    if (Transport* const transport = transports_.find(id)) {
      transport->set_message_bytes_max(endpoint_.frame_bytes_max());
    }
  }
}

void SchedulerDriver::on_blocked(ConnectionId id) {
  //= RTX-2
  endpoint_.set_transport_busy(id, true, now());
}

void SchedulerDriver::on_writable(ConnectionId id) {
  endpoint_.set_transport_busy(id, false, now());
}

void SchedulerDriver::on_closed(ConnectionId id) {
  transports_.erase(id);
  endpoint_.handle_closed(id, now());
}

void SchedulerDriver::on_alarm() {
  endpoint_.handle_timeout(now());
}

void SchedulerDriver::flush() {
  while (const auto out = endpoint_.poll_transmit(now())) {
    Transport* const transport = transports_.find(out->connection);
    if (transport == nullptr) continue;
    buffer_.clear();
    const MessageKind kind = encode(out->frame, out->revision, buffer_);
    if (transport->send(buffer_, kind) != SendStatus::Sent) {
      endpoint_.set_transport_busy(out->connection, true, now());
    }
  }
  while (const auto close = endpoint_.poll_close(now())) {
    if (Transport* const transport = transports_.find(close->connection)) {
      transport->close(close->request.code, close->request.reason);
    }
  }
  alarm_.set(endpoint_.poll_timeout());
}

}  // namespace windlass
