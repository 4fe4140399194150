#include "protocol/adapters/loop_buffers.h"

#include <openssl/rand.h>

#include "protocol/base/check.h"

namespace windlass {

std::uint32_t LoopBuffers::random_word() {
  if (random_used_ == random_.size()) {
    CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(random_.data()), static_cast<int>(sizeof random_)) ==
          1);
    random_used_ = 0;
  }
  return random_[random_used_++];
}

}  // namespace windlass
