// Opens a worker's connections.
#pragma once

#include "protocol/base/ids.h"

namespace windlass {

class Dialer {
 public:
  virtual ~Dialer() = default;
  // Starts one attempt; on_opened or on_closed with this id follows. An attempt that is still under way is
  // given up and says nothing more.
  virtual void dial(ConnectionId id) = 0;
};

}  // namespace windlass
