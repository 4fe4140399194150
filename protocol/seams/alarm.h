// One wake-up call per driver.
#pragma once

#include <optional>

#include "protocol/base/time.h"

namespace windlass {

class Alarm {
 public:
  virtual ~Alarm() = default;
  // Calls the driver's on_alarm at or after the deadline; none cancels. A new call replaces the one before.
  virtual void set(std::optional<Instant> deadline) = 0;
};

}  // namespace windlass
