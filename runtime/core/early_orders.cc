#include "runtime/core/early_orders.h"

#include <algorithm>
#include <utility>

#include "protocol/base/check.h"

namespace windlass::runtime {

void EarlyOrders::hold(EarlyOrder order, std::optional<Duration> timeout, Instant now) {
  CHECK(is_open(now) && !is_full());
  const Instant give_up_at = timeout ? std::min(open_until_, now + *timeout) : open_until_;
  waiting_.push_back({std::move(order), give_up_at});
}

template <class IsTaken>
std::vector<EarlyOrder> EarlyOrders::take_if(const IsTaken& is_taken) {
  std::vector<EarlyOrder> taken;
  std::vector<Waiting> left;
  for (Waiting& each : waiting_) {
    if (is_taken(each)) {
      taken.push_back(std::move(each.order));
    } else {
      left.push_back(std::move(each));
    }
  }
  waiting_ = std::move(left);
  return taken;
}

std::vector<EarlyOrder> EarlyOrders::take_known(const std::function<bool(std::string_view)>& is_known) {
  return take_if([&](const Waiting& each) { return is_known(each.order.application_id); });
}

std::vector<EarlyOrder> EarlyOrders::take_due(Instant now) {
  return take_if([&](const Waiting& each) { return each.give_up_at <= now; });
}

std::vector<EarlyOrder> EarlyOrders::close() {
  open_until_ = Instant{};
  return take_if([](const Waiting&) { return true; });
}

std::optional<Instant> EarlyOrders::poll_timeout() const {
  const auto first = std::ranges::min_element(waiting_, {}, &Waiting::give_up_at);
  return first == waiting_.end() ? std::nullopt : std::optional{first->give_up_at};
}

}  // namespace windlass::runtime
