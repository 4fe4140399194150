#include "protocol/session/receive_window.h"

#include <algorithm>

#include "protocol/base/check.h"
#include "protocol/base/mutant.h"

namespace windlass {

ReceiveWindow::ReceiveWindow(Credit capacity) : capacity_(capacity) {
  open_edge();
}

ReceiveWindow::Arrival ReceiveWindow::handle(Seq seq, const Data& data, const MessageParts& parts) {
  //= WIN-6
  if (seq < received_next_) return MUTANT(window_delivers_duplicates) ? Arrival::InOrder : Arrival::Duplicate;
  if (early_.contains(seq)) return Arrival::Duplicate;
  //= WIN-7
  if (seq >= right_edge_) return Arrival::Outside;
  const std::uint64_t bytes = credit_bytes(data);
  const bool nothing_held = received_next_ == owned_next_ && early_.empty();
  //= WIN-7
  if (!nothing_held && received_bytes_ + early_bytes_ + bytes > right_edge_bytes_ &&
      !MUTANT(window_ignores_bytes)) {
    return Arrival::Outside;
  }
  //= WIN-4
  if (seq == received_next_) {
    receive_in_order(bytes);
    return Arrival::InOrder;
  }
  //= WIN-5
  early_.emplace(seq, Message{parts});
  early_bytes_ += bytes;
  return Arrival::Early;
}

bool ReceiveWindow::take_next(Message& message) {
  const auto next = early_.find(received_next_);
  if (next == early_.end()) return false;
  message = std::move(next->second);
  early_.erase(next);
  early_bytes_ -= message.credit_bytes();
  receive_in_order(message.credit_bytes());
  return true;
}

void ReceiveWindow::own(Seq next) {
  CHECK(next <= received_next_);
  while (owned_next_ < next) {
    owned_bytes_ += sizes_.pop_front();
    ++owned_next_;
  }
  open_edge();
}

void ReceiveWindow::set_capacity(Credit capacity) {
  capacity_ = capacity;
  open_edge();
}

void ReceiveWindow::describe(AckState& state) const {
  //= ACK-1
  state.owned_next = MUTANT(ack_before_owned) ? received_next_ : owned_next_;
  //= ACK-2
  state.held.set_first(received_next_ - state.owned_next);
  for (const auto& [seq, message] : early_) state.held.set(seq - state.owned_next);
  state.credit = {static_cast<std::uint32_t>(std::max(right_edge_, state.owned_next) - state.owned_next),
                  right_edge_bytes_ - owned_bytes_};
}

void ReceiveWindow::open_edge() {
  if (MUTANT(window_takes_credit_back))
    right_edge_ = std::max(received_next_, owned_next_ + capacity_.frames);
  //= WIN-10
  right_edge_ = std::max(right_edge_, owned_next_ + capacity_.frames);
  //= WIN-10
  right_edge_bytes_ = std::max(right_edge_bytes_, owned_bytes_ + capacity_.bytes);
}

void ReceiveWindow::receive_in_order(std::uint64_t bytes) {
  sizes_.push_back(static_cast<std::uint32_t>(bytes));
  received_bytes_ += bytes;
  ++received_next_;
}

}  // namespace windlass
