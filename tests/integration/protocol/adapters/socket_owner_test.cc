#include "protocol/adapters/socket_owner.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace windlass {
namespace {

constexpr std::string_view kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:1388 00000000:0000 0A 00000000:00000000 00:00000000 00000000   900        0 11 1 0\n"
    "   1: 0100007F:1388 0100007F:9C40 01 00000000:00000000 00:00000000 00000000   900        0 12 1 0\n"
    "   2: 0100007F:9C40 0100007F:1388 01 00000000:00000000 00:00000000 00000000  1001        0 13 1 0\n"
    "   3: 0200007F:9C42 0100007F:1388 01 00000000:00000000 00:00000000 00000000  1002        0 14 1 0\n"
    "   4: 00000000000000000000000001000000:9C43 00000000000000000000000001000000:1388 01 "
    "00000000:00000000 00:00000000 00000000  1003        0 15 1 0\n"
    "   5: 0000000000000000FFFF00000100007F:9C44 0000000000000000FFFF00000100007F:1388 01 "
    "00000000:00000000 00:00000000 00000000  1004        0 16 1 0\n"
    "   6: 0100007F:9C45 0100007F:1388 06 00000000:00000000 03:000017D0 00000000     0        0 0 3 0\n";

TEST(SocketOwnerTest, IsThatOfTheOtherEnd) {
  const auto owner = find_socket(kTable, 40000, 5000);
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->user, 1001U);
  EXPECT_EQ(owner->inode, 13U);
  EXPECT_EQ(find_socket(kTable, 5000, 40000)->user, 900U);
  EXPECT_EQ(find_socket(kTable, 40003, 5000)->user, 1003U) << "of IPv6";
  EXPECT_EQ(find_socket(kTable, 40004, 5000)->user, 1004U) << "of a mapped address";
  EXPECT_FALSE(find_socket(kTable, 40005, 5000)) << "closed, and nobody's by now";
  EXPECT_FALSE(find_socket(kTable, 40001, 5000));
  EXPECT_FALSE(find_socket({}, 40000, 5000));
}

TEST(SocketOwnerTest, OfAConnectionIsToldByTheKernel) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::uint16_t port = ntohs(address.sin_port);
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  sockaddr_in from{};
  size = sizeof from;
  ASSERT_EQ(::getsockname(client, reinterpret_cast<sockaddr*>(&from), &size), 0);
  const auto owner = socket_owner("ipv4:127.0.0.1:" + std::to_string(ntohs(from.sin_port)), port);
  ASSERT_TRUE(owner);
  struct stat facts {};
  ASSERT_EQ(::fstat(client, &facts), 0);
  EXPECT_EQ(owner->user, ::geteuid());
  EXPECT_EQ(owner->inode, facts.st_ino);
  EXPECT_FALSE(socket_owner("unix:/tmp/x", port));
  EXPECT_FALSE(socket_owner("", port));
  EXPECT_TRUE(tells_of_sockets());
  ::close(client);
  ::close(listener);
}

}  // namespace
}  // namespace windlass
