// TLS between two byte buffers: sealed bytes in and out, plain bytes out and in. It touches no socket, so one
// read of a socket can carry many records and one write too, and it keeps no buffers of its own.
#pragma once

#include <openssl/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "protocol/adapters/hello_guard.h"
#include "protocol/adapters/tls_context.h"
#include "protocol/base/bytes.h"

namespace windlass {

class TlsPump final {
 public:
  explicit TlsPump(SslPointer ssl);
  ~TlsPump();
  TlsPump(const TlsPump&) = delete;
  TlsPump& operator=(const TlsPump&) = delete;

  enum class State : std::uint8_t {
    More,    // all input is used up
    Ended,   // the peer said goodbye
    Failed,  // see failure(); nothing more can be done but to send what was sealed (an alert)
  };
  struct Opened {
    State state = State::More;
    std::size_t bytes = 0;  // at the front of `plain`
  };

  // Uses up `sealed`: shakes hands as far as it goes, and decrypts. `plain` must be larger than `sealed` by
  // two records. What is to be sent back is appended to `reply`.
  Opened open(std::span<const char> sealed, std::span<char> plain, Bytes& reply);

  // Begins a client's handshake.
  State begin(Bytes& reply);

  // Encrypts; only once the handshake is done. False after a failure.
  bool seal(BytesView plain, Bytes& sealed);

  // Says goodbye.
  void finish(Bytes& sealed);

  bool has_answered() const;                 // a server's: the client's first message was read and answered
  bool is_open() const { return is_open_; }  // the handshake is done
  const std::string& failure() const { return failure_; }
  SSL* ssl() const { return ssl_.get(); }

 private:
  State shake_hands();
  State judge(int result);

  SslPointer ssl_;
  std::span<const char> input_;  // during a call
  Bytes* output_ = nullptr;      // during a call
  std::string failure_;
  HelloGuard hello_;  // of a server's
  bool is_open_ = false;

  friend struct PumpBio;
};

}  // namespace windlass
