// TCP sockets as plain system calls: opening, reading and writing without ever blocking. Knows nothing of
// loops.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "protocol/base/bytes.h"
#include "protocol/base/result.h"
#include "protocol/base/time.h"

namespace windlass {

// A descriptor with one owner.
class Socket final {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();
  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  bool is_loopback() const;
  std::uint16_t port() const;
  std::string text() const;  // "192.0.2.1:443", "[2001:db8::1]:443"
};

// A numeric address; an error otherwise, because a listener's name must not depend on DNS.
Result<SocketAddress> numeric_address(const std::string& host, std::uint16_t port);

// Alone: an address where anybody listens, this process too, is an error (E.LIMIT.CAPACITY). First: likewise,
// but the other loops of this process may join afterwards, each with a listener of its own on the same port.
enum class PortUse : std::uint8_t { Alone, First, Joins };

// Port 0 chooses one.
Result<Socket> listen_on(const SocketAddress& address, PortUse use = PortUse::Alone);
SocketAddress local_address(int fd);

struct Accepted {
  Socket socket;  // not open: `error` says why
  SocketAddress peer;
  int error = 0;  // errno; EAGAIN when nobody waits
};
Accepted accept_one(int listener);
bool is_readable(int fd);  // now; of a listener: somebody waits

// Begins a connection; when it is writable, connect_error tells how it went.
Result<Socket> begin_connect(const SocketAddress& address);
int connect_error(int fd);

enum class IoState : std::uint8_t { Done, WouldBlock, Ended, Failed };
struct IoResult {
  IoState state = IoState::Done;
  std::size_t bytes = 0;
  int error = 0;
};
IoResult read_some(int fd, std::span<char> into);
IoResult write_some(int fd, BytesView bytes);

// The kernel probes a quiet connection, and closes it (ETIMEDOUT) when neither a probe nor anything that was
// sent has been acknowledged for so long. A peer that takes nothing for so long counts as silent too.
void end_when_silent(int fd, Duration after);
void finish_writing(int fd);  // the peer reads the end after what was written
void reset_on_close(int fd);  // a close then throws away what is unsent
std::string error_text(int error);

}  // namespace windlass
