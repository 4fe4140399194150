// A peer that sends any bytes whatever, over a real socket on the test's loop, and keeps what comes back.
// With or without TLS, as client or behind a listener.
#pragma once

#include <poll.h>

#include <memory>
#include <string>
#include <utility>

#include "protocol/adapters/readiness.h"
#include "protocol/adapters/socket_stream.h"
#include "protocol/base/check.h"

namespace windlass::testing {

class RawPeer final : private ReadinessEvents {
 public:
  // Connects to a listener on the loopback; its TLS handshake goes on while the loop runs.
  RawPeer(EventLoop& loop, std::uint16_t port, const TlsContext* tls = nullptr)
      : RawPeer(loop, connected(port),
                tls == nullptr ? nullptr : std::make_unique<TlsPump>(tls->connect("127.0.0.1"))) {
    if (tls != nullptr) stream_.begin_tls();
  }
  RawPeer(EventLoop& loop, Socket socket, std::unique_ptr<TlsPump> tls)
      : loop_(loop), stream_(loop, {std::move(socket), std::move(tls), {}}, *this) {
    stream_.wait_readable();
  }

  // Small enough for the socket; after the TLS handshake.
  void send(BytesView bytes) {
    const auto output = stream_.write(bytes);
    CHECK(output.state == SocketStream::WriteState::Done && output.bytes == bytes.size());
  }
  void stop_reading() { reading_ = false; }
  void read_on() {
    reading_ = true;
    stream_.wait_readable();
  }
  void finish() { stream_.finish(); }
  bool is_ready() const { return stream_.is_ready(); }

  std::string received;
  bool ended = false;   // the other side sends nothing more
  bool failed = false;  // reset, or TLS said no
  std::string failure;

 private:
  static Socket connected(std::uint16_t port) {
    auto socket = begin_connect(*numeric_address("127.0.0.1", port));
    CHECK(socket.has_value());
    pollfd waiting{socket->fd(), POLLOUT, 0};
    CHECK(::poll(&waiting, 1, 10'000) == 1 && connect_error(socket->fd()) == 0);
    return std::move(*socket);
  }

  void on_readable() override {
    if (!reading_) return;
    const auto input = stream_.read();
    received.append(input.bytes.data(), input.bytes.size());
    loop_.turn_again();  // the test may wait for what just came
    ended = input.state == SocketStream::ReadState::Ended;
    failed = input.state == SocketStream::ReadState::Failed;
    if (failed) failure = stream_.failure();
    if (!ended && !failed) stream_.wait_readable();
  }
  void on_writable() override { static_cast<void>(stream_.write({})); }

  EventLoop& loop_;
  SocketStream stream_;
  bool reading_ = true;
};

// Waits for one peer to connect.
class RawListener final : private ReadinessEvents {
 public:
  explicit RawListener(EventLoop& loop) : loop_(loop), readiness_(loop, listening(), *this) {
    readiness_.wait_readable();
  }
  std::uint16_t port() const { return local_address(readiness_.fd()).port(); }
  // With TLS if a context is set before the peer comes.
  const TlsContext* tls = nullptr;
  std::unique_ptr<RawPeer> peer;

 private:
  static Socket listening() {
    auto socket = listen_on(*numeric_address("127.0.0.1", 0));
    CHECK(socket.has_value());
    return std::move(*socket);
  }
  void on_readable() override {
    Accepted accepted = accept_one(readiness_.fd());
    if (accepted.socket.is_open()) {
      peer = std::make_unique<RawPeer>(loop_, std::move(accepted.socket),
                                       tls == nullptr ? nullptr : std::make_unique<TlsPump>(tls->accept()));
      loop_.turn_again();
    }
    readiness_.wait_readable();
  }
  void on_writable() override {}

  EventLoop& loop_;
  Readiness readiness_;
};

}  // namespace windlass::testing
