#include "worker-agent/adapters/peer_user.h"

#include <gtest/gtest.h>

namespace windlass::agent {
namespace {

constexpr std::string_view kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:1388 00000000:0000 0A 00000000:00000000 00:00000000 00000000   900        0 1 1 0\n"
    "   1: 0100007F:1388 0100007F:9C40 01 00000000:00000000 00:00000000 00000000   900        0 2 1 0\n"
    "   2: 0100007F:9C40 0100007F:1388 01 00000000:00000000 00:00000000 00000000  1001        0 3 1 0\n"
    "   3: 0100007F:9C41 0100007F:1388 06 00000000:00000000 03:000017D0 00000000     0        0 0 3 0\n";

TEST(PeerUser, IsOfTheSocketAtTheOtherEnd) {
  EXPECT_EQ(socket_user(kTable, 40000, 5000), 1001U);
  EXPECT_EQ(socket_user(kTable, 5000, 40000), 900U);
}

TEST(PeerUser, IsUnknownOfASocketThatIsNotConnected) {
  EXPECT_FALSE(socket_user(kTable, 40001, 5000)) << "closed, and nobody's by now";
  EXPECT_FALSE(socket_user(kTable, 40002, 5000));
  EXPECT_FALSE(socket_user({}, 40000, 5000));
}

TEST(PeerUser, IsFoundBehindAMappedAddress) {
  EXPECT_EQ(
      socket_user("   0: 0000000000000000FFFF00000100007F:9C40 0000000000000000FFFF00000100007F:1388 01 "
                  "00000000:00000000 00:00000000 00000000  1002        0 3 1 0",
                  40000, 5000),
      1002U);
}

TEST(PeerUser, ANameWithoutAPortIsNobodys) {
  EXPECT_FALSE(is_peer_of(0, "unix:/tmp/x", 5000));
  EXPECT_FALSE(is_peer_of(0, "", 5000));
}

}  // namespace
}  // namespace windlass::agent
