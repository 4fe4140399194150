// Memory that connections of one loop share, because only one of them reads, encrypts or fills a frame at a
// time: an idle connection then holds none. Send buffers are lent for as long as a connection has something
// unsent.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "protocol/base/bytes.h"
#include "protocol/base/limits.h"

namespace windlass {

class LoopBuffers final {
 public:
  // A TLS record that began in an earlier read may end in this one, so more can come out than was read.
  static constexpr std::size_t kPlainBytes = limits::kReadBytesMax + 32 * 1024;

  std::span<char> received() { return received_; }  // as the socket gave it
  std::span<char> plain() { return plain_; }        // decrypted
  Bytes& sealed() { return sealed_; }               // encrypted, on its way to the socket

  // An empty buffer, usually with capacity.
  Bytes lend() {
    if (spare_.empty()) return {};
    Bytes buffer = std::move(spare_.back());
    spare_.pop_back();
    return buffer;
  }

  void take_back(Bytes buffer) {
    if (buffer.capacity() > limits::kBufferKeptBytes + limits::kBufferKeptBytes / 2) return;
    if (spare_.size() >= limits::kBuffersKept) return;
    buffer.clear();
    spare_.push_back(std::move(buffer));
  }

  // Unpredictable words for the masking keys of a client's frames, drawn many at a time.
  std::uint32_t random_word();

 private:
  std::vector<char> received_ = std::vector<char>(limits::kReadBytesMax);
  std::vector<char> plain_ = std::vector<char>(kPlainBytes);
  Bytes sealed_;
  std::vector<Bytes> spare_;
  std::array<std::uint32_t, 256> random_{};
  std::size_t random_used_ = random_.size();
};

}  // namespace windlass
