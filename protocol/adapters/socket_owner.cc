#include "protocol/adapters/socket_owner.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

namespace windlass {
namespace {

constexpr std::string_view kConnected = "01";
constexpr std::string_view kListens = "0A";
// Columns: number, local address, remote address, state, queues, timer, retransmits, user, timeout, inode.
constexpr std::size_t kLocalAt = 1;
constexpr std::size_t kRemoteAt = 2;
constexpr std::size_t kStateAt = 3;
constexpr std::size_t kUserAt = 7;
constexpr std::size_t kInodeAt = 9;
using Columns = std::array<std::string_view, kInodeAt + 1>;

constexpr std::array kTables{"/proc/net/tcp", "/proc/net/tcp6"};

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// As the tables write addresses: in words of this machine.
std::string in_hex(const void* address, std::size_t size) {
  std::string text;
  for (std::size_t at = 0; at < size; at += sizeof(std::uint32_t)) {
    std::uint32_t word = 0;
    std::memcpy(&word, static_cast<const char*>(address) + at, sizeof word);
    std::array<char, 9> digits{};
    std::snprintf(digits.data(), digits.size(), "%08X", word);
    text += digits.data();
  }
  return text;
}

// An IPv4 address and its IPv6 form are the same peer, and each table has its own way to write it.
bool is_at(std::string_view column, std::string_view address) {
  if (column == address) return true;
  constexpr std::size_t kShort = 8;
  static const std::string mapped = [] {
    const std::array<unsigned char, 12> prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return in_hex(prefix.data(), prefix.size());
  }();
  return address.size() == kShort && column.size() == mapped.size() + kShort && column.starts_with(mapped) &&
         column.ends_with(address);
}

bool has_port(std::string_view column, std::uint16_t port) {
  std::array<char, 8> digits{};
  std::snprintf(digits.data(), digits.size(), ":%04X", static_cast<unsigned>(port));
  return column.ends_with(digits.data());
}

std::string_view address_in(std::string_view column) {
  return column.substr(0, column.find(':'));
}

// Of the lines for which `is_it` holds. One that cannot be read is nobody's.
template <class Predicate>
std::vector<SocketOwner> find_all(std::string_view table, const Predicate& is_it) {
  std::vector<SocketOwner> found;
  while (!table.empty()) {
    const std::size_t end = std::min(table.find('\n'), table.size());
    std::string_view line = table.substr(0, end);
    table.remove_prefix(std::min(end + 1, table.size()));
    Columns columns;
    for (std::string_view& column : columns) {
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      column = line.substr(0, line.find(' '));
      line.remove_prefix(column.size());
    }
    if (!is_it(columns)) continue;
    const auto user = parse_number<std::uint32_t>(columns[kUserAt]);
    const auto inode = parse_number<std::uint64_t>(columns[kInodeAt]);
    if (user && inode) found.push_back({*user, *inode});
  }
  return found;
}

std::string tables() {
  std::string all;
  for (const char* const path : kTables) {
    std::ifstream file{path};
    all.append(std::istreambuf_iterator<char>{file}, {}).append("\n");
  }
  return all;
}

}  // namespace

std::optional<LoopbackPeer> read_loopback_peer(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = parse_number<std::uint16_t>(text.substr(colon + 1));
  if (!port) return std::nullopt;
  std::string host{text.substr(0, colon)};
  for (const std::string_view scheme : {"ipv4:", "ipv6:"}) {
    if (host.starts_with(scheme)) host.erase(0, scheme.size());
  }
  for (const auto& [open, close] : {std::pair{"[", "]"}, std::pair{"%5B", "%5D"}}) {
    const std::string_view begin{open};
    const std::string_view end{close};
    if (!host.starts_with(begin) || !host.ends_with(end)) continue;
    host = host.substr(begin.size(), host.size() - begin.size() - end.size());
  }
  constexpr std::string_view kMapped = "::ffff:";
  if (host.starts_with(kMapped) && host.find('.') != std::string::npos) host.erase(0, kMapped.size());
  in_addr four{};
  in6_addr six{};
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1 && (ntohl(four.s_addr) >> 24U) == 127)
    return LoopbackPeer{in_hex(&four, sizeof four), *port};
  if (::inet_pton(AF_INET6, host.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six))
    return LoopbackPeer{in_hex(&six, sizeof six), *port};
  return std::nullopt;
}

std::optional<SocketOwner> find_socket(std::string_view table, const LoopbackPeer& peer, std::uint16_t port) {
  const auto found = find_all(table, [&](const Columns& columns) {
    return columns[kStateAt] == kConnected && has_port(columns[kLocalAt], peer.port) &&
           is_at(address_in(columns[kLocalAt]), peer.address) && has_port(columns[kRemoteAt], port);
  });
  // Two would mean that somebody made one look like the other's.
  if (found.size() != 1) return std::nullopt;
  return found.front();
}

std::vector<SocketOwner> find_listeners(std::string_view table, const LoopbackPeer& address) {
  const auto is_any = [](std::string_view each) {
    return each.find_first_not_of('0') == std::string_view::npos;
  };
  return find_all(table, [&](const Columns& columns) {
    const std::string_view at = address_in(columns[kLocalAt]);
    return columns[kStateAt] == kListens && has_port(columns[kLocalAt], address.port) &&
           (is_at(at, address.address) || is_any(at));
  });
}

std::optional<SocketOwner> socket_owner(std::string_view peer, std::uint16_t port) {
  const auto read = read_loopback_peer(peer);
  if (!read) return std::nullopt;
  return find_socket(tables(), *read, port);
}

std::vector<SocketOwner> listener_owners(std::string_view address) {
  const auto read = read_loopback_peer(address);
  if (!read) return {};
  return find_listeners(tables(), *read);
}

bool tells_of_sockets() {
  return std::ranges::any_of(kTables, [](const char* path) { return std::ifstream{path}.get() != EOF; });
}

}  // namespace windlass
