// The agent's side of a worker's HTTP port, over the loopback.
#include "worker-agent/adapters/http_forward.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <optional>
#include <vector>

#include "protocol/adapters/socket.h"
#include "worker-agent/adapters/files.h"

namespace windlass::agent {
namespace {

// Listens and never accepts. Its queue is full, so that further connections wait in the kernel.
class FullListener {
 public:
  FullListener() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_.get(), plain, size), 0);
    EXPECT_EQ(::listen(listener_.get(), 0), 0);
    EXPECT_EQ(::getsockname(listener_.get(), plain, &size), 0);
    port_ = ntohs(address.sin_port);
    for (int i = 0; i < 8; ++i) {
      FileDescriptor each{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
      static_cast<void>(::connect(each.get(), plain, size));
      waiting_.push_back(std::move(each));
    }
  }
  std::uint16_t port() const { return port_; }

 private:
  FileDescriptor listener_;
  std::vector<FileDescriptor> waiting_;
  std::uint16_t port_ = 0;
};

TEST(HttpForward, AProbeOfAPortThatNeverAcceptsEndsWhenItsTimeIsOver) {
  const FullListener listener;
  EventLoop loop;
  HttpForward forward{loop, [](const std::string&) {}};
  std::optional<bool> told;
  LoopAlarm guard{loop, [&] { loop.stop(); }};
  loop.post([&] {
    guard.set(loop.now().steady + seconds{20});
    forward.probe(listener.port(), milliseconds{200}, [&](bool answers) {
      told = answers;
      loop.stop();
    });
  });
  loop.run();
  EXPECT_EQ(told, false);
}

}  // namespace
}  // namespace windlass::agent
