// Orders that are here before the workers of their application. A runtime that was started again has
// forgotten who works for it, and the scheduler sends what was under way at once, before an agent had time to
// come back: "nobody here holds that application" would be said of one that is a moment away. So after its
// start a runtime keeps such orders for a while, in the order they came.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/time.h"

namespace windlass::runtime {

struct EarlyOrder {
  std::string id;
  std::string corr;
  std::string application_id;
  std::string payload;
};

class EarlyOrders final {
 public:
  EarlyOrders(Duration window, std::size_t orders_max, Instant start)
      : open_until_(start + window), orders_max_(orders_max) {}

  bool is_open(Instant now) const { return now < open_until_; }
  bool is_full() const { return waiting_.size() >= orders_max_; }
  // Only while it is open and not full. `timeout` is how long whoever asked waits for the answer.
  void hold(EarlyOrder order, std::optional<Duration> timeout, Instant now);

  // Each order leaves by one of these, once.
  std::vector<EarlyOrder> take_known(const std::function<bool(std::string_view application_id)>& is_known);
  std::vector<EarlyOrder> take_due(Instant now);
  std::vector<EarlyOrder> close();  // all, and none is taken any more

  std::optional<Instant> poll_timeout() const;

 private:
  struct Waiting {
    EarlyOrder order;
    Instant give_up_at;
  };
  template <class IsTaken>
  std::vector<EarlyOrder> take_if(const IsTaken& is_taken);

  Instant open_until_;
  std::size_t orders_max_;
  std::vector<Waiting> waiting_;
};

}  // namespace windlass::runtime
