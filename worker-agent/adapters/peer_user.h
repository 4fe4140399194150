// Whose the other end of a connection on this machine's loopback is. The kernel tells of every socket who
// made it, so a name that another user could have read off a command line need not be believed.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace windlass::agent {

// In a text as of /proc/net/tcp or tcp6: who made the socket of port `from` that is connected to port `to`.
std::optional<std::uint32_t> socket_user(std::string_view table, std::uint16_t from, std::uint16_t to);

// Whether `peer`, as gRPC names it ("ipv4:127.0.0.1:40000"), connected to our `port` as this user. True too
// where the system does not tell of sockets.
bool is_peer_of(std::uint32_t user, std::string_view peer, std::uint16_t port);

}  // namespace windlass::agent
