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

std::optional<SocketOwner> found(std::string_view peer, std::uint16_t port, std::string_view table = kTable) {
  const auto read = read_loopback_peer(peer);
  return read ? find_socket(table, *read, port) : std::nullopt;
}

TEST(SocketOwnerTest, IsThatOfTheOtherEnd) {
  const auto owner = found("127.0.0.1:40000", 5000);
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->user, 1001U);
  EXPECT_EQ(owner->inode, 13U);
  EXPECT_EQ(found("ipv4:127.0.0.1:5000", 40000)->user, 900U);
  EXPECT_EQ(found("[::1]:40003", 5000)->user, 1003U) << "of IPv6";
  EXPECT_EQ(found("ipv6:%5B::1%5D:40003", 5000)->user, 1003U) << "as gRPC writes it";
  EXPECT_EQ(found("127.0.0.1:40004", 5000)->user, 1004U) << "of a mapped address";
  EXPECT_EQ(found("[::ffff:127.0.0.1]:40004", 5000)->user, 1004U) << "told as a mapped address";
  EXPECT_FALSE(found("127.0.0.1:40005", 5000)) << "closed, and nobody's by now";
  EXPECT_FALSE(found("127.0.0.1:40001", 5000));
  EXPECT_FALSE(found("127.0.0.1:40000", 5000, {}));
}

TEST(SocketOwnerTest, CannotBeBorrowedByAnotherLoopbackAddress) {
  EXPECT_EQ(found("127.0.0.2:40002", 5000)->user, 1002U);
  EXPECT_FALSE(found("127.0.0.2:40000", 5000)) << "the port of somebody else, on an address of its own";
  EXPECT_FALSE(found("127.0.0.1:40002", 5000));
  const std::string twice =
      std::string{kTable} +
      "   7: 0100007F:9C40 0500007F:1388 01 00000000:00000000 00:00000000 00000000  1007        0 17 1 0\n";
  EXPECT_FALSE(found("127.0.0.1:40000", 5000, twice))
      << "to two addresses of ours: which one it is nobody can say";
  EXPECT_FALSE(found("10.0.0.1:40000", 5000)) << "not on this machine";
}

TEST(SocketOwnerTest, OfAListenerIsFoundByItsAddress) {
  const auto owners = find_listeners(kTable, *read_loopback_peer("127.0.0.1:5000"));
  ASSERT_EQ(owners.size(), 1U);
  EXPECT_EQ(owners.front().inode, 11U);
  EXPECT_TRUE(find_listeners(kTable, *read_loopback_peer("127.0.0.2:5000")).empty());
  EXPECT_TRUE(find_listeners(kTable, *read_loopback_peer("127.0.0.1:40000")).empty())
      << "connected, and listens to nobody";
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
