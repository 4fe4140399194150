// The agent's side of a worker's HTTP port, over the loopback.
#include "worker-agent/adapters/http_forward.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
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
  HttpForward forward{loop, [](const std::string&) {}, [](const HttpPlace&) { return true; }};
  std::optional<bool> told;
  LoopAlarm guard{loop, [&] { loop.stop(); }};
  loop.post([&] {
    guard.set(loop.now().steady + seconds{20});
    forward.probe({"127.0.0.1", listener.port()}, milliseconds{200}, [&](bool answers) {
      told = answers;
      loop.stop();
    });
  });
  loop.run();
  EXPECT_EQ(told, false);
}

TEST(HttpForward, DialsTheLoopbackThatTheWorkerNames) {
  const FileDescriptor listener{::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const int only = 1;
  ::setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  socklen_t size = sizeof address;
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener.get(), plain, size) != 0) GTEST_SKIP() << "there is no ::1 here";
  ASSERT_EQ(::listen(listener.get(), 4), 0);
  ASSERT_EQ(::getsockname(listener.get(), plain, &size), 0);
  const auto place = place_of_http_uri("http://[::1]:" + std::to_string(ntohs(address.sin6_port)) + "/");
  ASSERT_TRUE(place.has_value());
  EventLoop loop;
  HttpForward forward{loop, [](const std::string&) {}, [](const HttpPlace&) { return true; }};
  forward.set_place(*place);
  forward.handle(
      {.invocation_id = "i", .head = function_rpc::HttpStreamHead{.method = "GET", .target = "/"}});
  pollfd waiting{listener.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 10'000), 1);
}

TEST(HttpForward, NamesOfThisMachineAloneAreDialled) {
  EXPECT_EQ(place_of_http_uri("http://localhost:1234/").value(), (HttpPlace{"127.0.0.1", 1234}));
  EXPECT_EQ(place_of_http_uri("http://127.0.0.1:1234").value(), (HttpPlace{"127.0.0.1", 1234}));
  for (const char* wrong : {"http://example.org:80/", "http://::1:80/", "https://localhost:1/",
                            "http://localhost/", "http://localhost:0/", "http://[::2]:80/"}) {
    EXPECT_FALSE(place_of_http_uri(wrong).has_value()) << wrong;
  }
}

}  // namespace
}  // namespace windlass::agent
