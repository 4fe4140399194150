// Where the time comes from.
#pragma once

#include "protocol/base/time.h"

namespace windlass {

class Clock {
 public:
  virtual ~Clock() = default;
  // Constant within one loop turn.
  virtual Now now() const = 0;
};

}  // namespace windlass
