// A connected socket with or without TLS, as plain bytes. Reads into the loop's buffers, writes what fits the
// socket, and keeps only what the socket did not take.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "protocol/adapters/event_loop.h"
#include "protocol/adapters/readiness.h"
#include "protocol/adapters/socket.h"
#include "protocol/adapters/tls_pump.h"
#include "protocol/base/bytes.h"

namespace windlass {

class SocketStream final {
 public:
  // What a stream is made of, to be carried to another loop.
  struct Parts {
    Socket socket;
    std::unique_ptr<TlsPump> tls;  // none: clear text
    Bytes unsent;                  // sealed, not taken by the socket yet
  };

  // Events are those of the readiness: the owner asks for each with wait_*.
  SocketStream(EventLoop& loop, Parts parts, ReadinessEvents& events);

  enum class ReadState : std::uint8_t {
    More,     // the socket may hold more
    Drained,  // it does not
    Ended,    // the peer will send nothing more
    Failed,   // see failure()
  };
  struct Input {
    ReadState state = ReadState::Drained;
    std::span<char> bytes;  // in the loop's buffer; valid until the next read of any stream
  };
  // At most limits::kReadBytesMax from the socket; TLS handshakes on the way.
  Input read();

  // Begins a client's TLS handshake. Not for clear text.
  void begin_tls();

  enum class WriteState : std::uint8_t { Done, Blocked, Failed };
  struct Output {
    WriteState state = WriteState::Done;
    std::size_t bytes = 0;  // of `plain`, taken from its front: sent, or sealed and kept
  };
  // Blocked: the socket is full; wait_writable, then write again, even if nothing is left of `plain`.
  Output write(BytesView plain);

  void finish();  // after everything was written: goodbye in TLS and TCP, reading goes on
  void wait_readable() { readiness_.wait_readable(); }
  void wait_writable() { readiness_.wait_writable(); }
  void reset_when_closed() { reset_on_close(readiness_.fd()); }

  bool is_ready() const { return !tls_ || tls_->is_open(); }  // plain bytes may flow
  bool has_tls_failed() const { return tls_ && !tls_->failure().empty(); }
  std::size_t unsent_bytes() const { return unsent_.size() - unsent_used_; }
  const TlsPump* tls() const { return tls_.get(); }
  const std::string& failure() const { return failure_; }
  int fd() const { return readiness_.fd(); }

  // Empties the stream: only to be destroyed afterwards.
  Parts release();

 private:
  bool send_unsent();
  WriteState send_sealed(Bytes& sealed);
  Input fail(std::string why);

  EventLoop& loop_;
  Readiness readiness_;
  std::unique_ptr<TlsPump> tls_;
  Bytes unsent_;
  std::size_t unsent_used_ = 0;
  std::string failure_;
};

}  // namespace windlass
