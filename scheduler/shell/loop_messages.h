// What session loops and the control thread tell each other: plain values, posted.
#pragma once

#include <vector>

#include "scheduler/core/effects.h"
#include "scheduler/core/input.h"

namespace windlass {

// Of one committed batch: what one loop is to do, in this order.
struct LoopOrders {
  std::vector<Own> owns;
  std::vector<Send> sends;
  std::vector<SessionCommand> commands;

  bool empty() const { return owns.empty() && sends.empty() && commands.empty(); }
};

// The control thread, as the loops see it. Called from their threads.
class ControlInbox {
 public:
  virtual ~ControlInbox() = default;
  virtual void post_inputs(std::vector<Input> inputs) = 0;
};

}  // namespace windlass
