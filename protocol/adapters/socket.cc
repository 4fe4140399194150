#include "protocol/adapters/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "protocol/base/limits.h"

namespace windlass {
namespace {

Error local_error(std::string reason, SourceLine where = SourceLine::here()) {
  return {ErrorCode::Internal, Blame::Local, std::move(reason), where};
}

void set_option(int fd, int level, int name, int value) {
  static_cast<void>(::setsockopt(fd, level, name, &value, sizeof value));
}

template <class Address>
Address as(const sockaddr_storage& storage) {
  Address address{};
  std::memcpy(&address, &storage, sizeof address);
  return address;
}

const sockaddr* generic(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr*>(&address.storage);
}

Socket new_socket(int family) {
  return Socket{::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (fd_ >= 0 && this != &other) ::close(fd_);
  fd_ = other.release();
  return *this;
}

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

bool SocketAddress::is_loopback() const {
  if (storage.ss_family == AF_INET) {
    return (ntohl(as<sockaddr_in>(storage).sin_addr.s_addr) >> 24U) == 127;
  }
  const auto six = as<sockaddr_in6>(storage);
  return IN6_IS_ADDR_LOOPBACK(&six.sin6_addr);
}

std::uint16_t SocketAddress::port() const {
  return ntohs(storage.ss_family == AF_INET ? as<sockaddr_in>(storage).sin_port
                                            : as<sockaddr_in6>(storage).sin6_port);
}

std::string SocketAddress::text() const {
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  if (storage.ss_family == AF_INET) {
    const auto four = as<sockaddr_in>(storage);
    ::inet_ntop(AF_INET, &four.sin_addr, buffer.data(), buffer.size());
    return std::string{buffer.data()} + ':' + std::to_string(port());
  }
  const auto six = as<sockaddr_in6>(storage);
  ::inet_ntop(AF_INET6, &six.sin6_addr, buffer.data(), buffer.size());
  return '[' + std::string{buffer.data()} + "]:" + std::to_string(port());
}

Result<SocketAddress> numeric_address(const std::string& host, std::uint16_t port) {
  SocketAddress address;
  sockaddr_in four{};
  sockaddr_in6 six{};
  if (::inet_pton(AF_INET, host.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    std::memcpy(&address.storage, &four, sizeof four);
    address.size = sizeof four;
    return address;
  }
  if (::inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) == 1) {
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    std::memcpy(&address.storage, &six, sizeof six);
    address.size = sizeof six;
    return address;
  }
  return local_error("'" + host + "' is not a numeric IPv4 or IPv6 address; give one such as 127.0.0.1");
}

// The kernel lets a listener without SO_REUSEPORT in only where nobody listens. Set afterwards, the option
// lets the other loops of this process join; another process is its own first and is refused.
Result<Socket> listen_on(const SocketAddress& address, PortUse use) {
  Socket socket = new_socket(address.storage.ss_family);
  if (!socket.is_open()) return local_error("a socket could not be made: " + error_text(errno));
  set_option(socket.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (use == PortUse::Joins) set_option(socket.fd(), SOL_SOCKET, SO_REUSEPORT, 1);
  if (::bind(socket.fd(), generic(address), address.size) != 0 ||
      ::listen(socket.fd(), limits::kListenBacklog) != 0) {
    if (errno == EADDRINUSE) {
      return Error{ErrorCode::LimitCapacity, Blame::Local,
                   "cannot listen on " + address.text() +
                       ": another process listens there; end it, or choose another address"};
    }
    return local_error("cannot listen on " + address.text() + ": " + error_text(errno));
  }
  if (use == PortUse::First) set_option(socket.fd(), SOL_SOCKET, SO_REUSEPORT, 1);
  return socket;
}

SocketAddress local_address(int fd) {
  SocketAddress address;
  address.size = sizeof address.storage;
  CHECK(::getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.size) == 0);
  return address;
}

Accepted accept_one(int listener) {
  Accepted accepted;
  accepted.peer.size = sizeof accepted.peer.storage;
  accepted.socket = Socket{::accept4(listener, reinterpret_cast<sockaddr*>(&accepted.peer.storage),
                                     &accepted.peer.size, SOCK_NONBLOCK | SOCK_CLOEXEC)};
  if (accepted.socket.is_open()) {
    set_option(accepted.socket.fd(), IPPROTO_TCP, TCP_NODELAY, 1);
  } else {
    accepted.error = errno;
  }
  return accepted;
}

bool is_readable(int fd) {
  pollfd asked{fd, POLLIN, 0};
  return ::poll(&asked, 1, 0) == 1;
}

Result<Socket> begin_connect(const SocketAddress& address) {
  Socket socket = new_socket(address.storage.ss_family);
  if (!socket.is_open()) return local_error("a socket could not be made: " + error_text(errno));
  set_option(socket.fd(), IPPROTO_TCP, TCP_NODELAY, 1);
  if (::connect(socket.fd(), generic(address), address.size) != 0 && errno != EINPROGRESS) {
    return local_error("cannot connect to " + address.text() + ": " + error_text(errno));
  }
  return socket;
}

int connect_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

IoResult read_some(int fd, std::span<char> into) {
  ssize_t count = 0;
  do {
    count = ::recv(fd, into.data(), into.size(), 0);
  } while (count < 0 && errno == EINTR);
  if (count > 0) return {IoState::Done, static_cast<std::size_t>(count), 0};
  if (count == 0) return {IoState::Ended, 0, 0};
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {IoState::WouldBlock, 0, 0};
  return {IoState::Failed, 0, errno};
}

IoResult write_some(int fd, BytesView bytes) {
  ssize_t count = 0;
  do {
    count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  } while (count < 0 && errno == EINTR);
  if (count >= 0) return {IoState::Done, static_cast<std::size_t>(count), 0};
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {IoState::WouldBlock, 0, 0};
  return {IoState::Failed, 0, errno};
}

void end_when_silent(int fd, Duration after) {
  const auto whole = std::chrono::ceil<seconds>(after).count();
  if (whole <= 0) return;
  // The user timeout decides; the probes only have to begin early enough. One that was lost is followed by
  // another.
  constexpr int kProbesMax = 127;
  const int idle = static_cast<int>(std::clamp<std::int64_t>(whole / 2, 1, 3600));
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, kProbesMax);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT,
             static_cast<int>(std::chrono::duration_cast<milliseconds>(after).count()));
}

void finish_writing(int fd) {
  static_cast<void>(::shutdown(fd, SHUT_WR));
}

void reset_on_close(int fd) {
  const linger now{1, 0};
  static_cast<void>(::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now));
}

std::string error_text(int error) {
  return std::generic_category().message(error);
}

}  // namespace windlass
