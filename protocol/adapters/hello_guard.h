// A look at how a TLS client begins, before OpenSSL sees it: OpenSSL makes room for as many bytes as a
// ClientHello says it has, up to 128 KiB, when it has read the first nine. Strangers would get that for nine
// bytes each.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace windlass {

class HelloGuard final {
 public:
  // False when this cannot be the beginning of a ClientHello of a sane size. What is no TLS at all passes:
  // OpenSSL says what it is. To be given all input, in any pieces, until it is_done.
  bool handle_bytes(std::span<const char> sealed);
  bool is_done() const { return size_ == head_.size(); }

 private:
  std::array<unsigned char, 9> head_{};  // of the first record (5 bytes) and of the message in it (4)
  std::size_t size_ = 0;
};

}  // namespace windlass
