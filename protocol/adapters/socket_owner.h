// Whose the other end of a connection on this machine's loopback is. The kernel tells of every socket who
// made it and which it is, so a name that another user could have read off a command line need not be
// believed.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace windlass {

struct SocketOwner {
  std::uint32_t user = 0;
  std::uint64_t inode = 0;
};

// In a text as of /proc/net/tcp or tcp6: the socket of loopback port `from` that is connected to port `to`.
std::optional<SocketOwner> find_socket(std::string_view table, std::uint16_t from, std::uint16_t to);

// Of `peer`, as gRPC names it ("ipv4:127.0.0.1:40000"), which connected to our `port`. Nothing: it is not on
// this machine, or the system does not tell.
std::optional<SocketOwner> socket_owner(std::string_view peer, std::uint16_t port);

// Whether the system tells of sockets at all.
bool tells_of_sockets();

}  // namespace windlass
