#include "protocol/adapters/socket_owner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

namespace windlass {
namespace {

constexpr std::string_view kConnected = "01";
// Columns: number, local address, remote address, state, queues, timer, retransmits, user, timeout, inode.
constexpr std::size_t kUserAt = 7;
constexpr std::size_t kInodeAt = 9;

// Loopback addresses as the tables write them: in words of this machine. The end of a mapped IPv6 address is
// that of the IPv4 one.
constexpr bool kIsLittle = std::endian::native == std::endian::little;
constexpr std::string_view kLoopback4 = kIsLittle ? "0100007F" : "7F000001";
constexpr std::string_view kLoopback6 =
    kIsLittle ? "00000000000000000000000001000000" : "00000000000000000000000000000001";

constexpr std::array kTables{"/proc/net/tcp", "/proc/net/tcp6"};

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool is_loopback_end(std::string_view column, std::uint16_t port) {
  std::array<char, 8> digits{};
  std::snprintf(digits.data(), digits.size(), ":%04X", static_cast<unsigned>(port));
  if (!column.ends_with(digits.data())) return false;
  column.remove_suffix(5);
  return column.ends_with(kLoopback4) || column == kLoopback6;
}

}  // namespace

std::optional<SocketOwner> find_socket(std::string_view table, std::uint16_t from, std::uint16_t to) {
  while (!table.empty()) {
    const std::size_t end = std::min(table.find('\n'), table.size());
    std::string_view line = table.substr(0, end);
    table.remove_prefix(std::min(end + 1, table.size()));
    std::array<std::string_view, kInodeAt + 1> columns;
    for (std::string_view& column : columns) {
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      column = line.substr(0, line.find(' '));
      line.remove_prefix(column.size());
    }
    if (columns[3] != kConnected || !is_loopback_end(columns[1], from) || !is_loopback_end(columns[2], to)) {
      continue;
    }
    const auto user = parse_number<std::uint32_t>(columns[kUserAt]);
    const auto inode = parse_number<std::uint64_t>(columns[kInodeAt]);
    if (!user || !inode) return std::nullopt;
    return SocketOwner{*user, *inode};
  }
  return std::nullopt;
}

std::optional<SocketOwner> socket_owner(std::string_view peer, std::uint16_t port) {
  const auto from = parse_number<std::uint16_t>(peer.substr(peer.rfind(':') + 1));
  if (!from) return std::nullopt;
  for (const char* const path : kTables) {
    std::ifstream file{path};
    const std::string table{std::istreambuf_iterator<char>{file}, {}};
    if (const auto owner = find_socket(table, *from, port)) return owner;
  }
  return std::nullopt;
}

bool tells_of_sockets() {
  return std::ranges::any_of(kTables, [](const char* path) { return std::ifstream{path}.get() != EOF; });
}

}  // namespace windlass
