#include "worker-agent/adapters/peer_user.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdio>
#include <string>

#include "worker-agent/adapters/files.h"

namespace windlass::agent {
namespace {

constexpr std::string_view kEstablished = "01";
// Columns: number, local address, remote address, state, queues, timer, retransmits, user.
constexpr std::size_t kUserColumn = 7;

// 127.0.0.1 as the tables write it: its bytes read as a number of this machine. The end of a mapped IPv6
// address is the same.
constexpr const char* kLoopbackText = std::endian::native == std::endian::little ? "0100007F" : "7F000001";

std::string loopback_end(std::uint16_t port) {
  std::array<char, 16> text{};
  const int size =
      std::snprintf(text.data(), text.size(), "%s:%04X", kLoopbackText, static_cast<unsigned>(port));
  return {text.data(), static_cast<std::size_t>(size)};
}

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<std::uint32_t> socket_user(std::string_view table, std::uint16_t from, std::uint16_t to) {
  const std::string local = loopback_end(from);
  const std::string remote = loopback_end(to);
  while (!table.empty()) {
    const std::size_t end = std::min(table.find('\n'), table.size());
    std::string_view line = table.substr(0, end);
    table.remove_prefix(std::min(end + 1, table.size()));
    std::array<std::string_view, kUserColumn + 1> columns;
    for (std::string_view& column : columns) {
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      column = line.substr(0, line.find(' '));
      line.remove_prefix(column.size());
    }
    if (columns[1].ends_with(local) && columns[2].ends_with(remote) && columns[3] == kEstablished) {
      return number_in<std::uint32_t>(columns[kUserColumn]);
    }
  }
  return std::nullopt;
}

bool is_peer_of(std::uint32_t user, std::string_view peer, std::uint16_t port) {
  const auto from = number_in<std::uint16_t>(peer.substr(peer.rfind(':') + 1));
  if (!from) return false;
  bool is_told = false;
  for (const char* const path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    const auto table = read_all(path);
    if (!table || table->empty()) continue;
    is_told = true;
    if (const auto found = socket_user(*table, *from, port)) return *found == user;
  }
  return !is_told;
}

}  // namespace windlass::agent
