// Whose the other end of a connection on this machine's loopback is. The kernel tells of every socket who
// made it and which it is, so a name that another user could have read off a command line need not be
// believed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace windlass {

struct SocketOwner {
  std::uint32_t user = 0;
  std::uint64_t inode = 0;
};

// One end of a connection on this machine. The address counts, not the port alone: everybody may use any
// address of 127.0.0.0/8, and so a port that somebody else uses on another one.
struct LoopbackPeer {
  std::string address;  // as /proc/net/tcp writes it
  std::uint16_t port = 0;
};

// From "127.0.0.1:40000", "[::1]:40000", or as gRPC names them: "ipv4:127.0.0.1:40000",
// "ipv6:%5B::1%5D:40000". Nothing: it is no loopback address.
std::optional<LoopbackPeer> read_loopback_peer(std::string_view text);

// In a text as of /proc/net/tcp and tcp6: the socket of `peer` that is connected to `port`, if there is
// exactly one; and who listens at an address.
std::optional<SocketOwner> find_socket(std::string_view table, const LoopbackPeer& peer, std::uint16_t port);
std::vector<SocketOwner> find_listeners(std::string_view table, const LoopbackPeer& address);

// Of `peer`, which connected to our `port`. Nothing: it is not on this machine, or the system does not tell.
std::optional<SocketOwner> socket_owner(std::string_view peer, std::uint16_t port);
// Of whoever listens at a loopback address, such as "127.0.0.1:8080".
std::vector<SocketOwner> listener_owners(std::string_view address);

// Whether the system tells of sockets at all.
bool tells_of_sockets();

}  // namespace windlass
