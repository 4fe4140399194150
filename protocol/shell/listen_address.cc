#include "protocol/shell/listen_address.h"

#include <charconv>

#include "protocol/adapters/socket.h"

namespace windlass {

ListenAddress read_listen_address(ConfigTable& table, std::string_view key, std::string_view fallback) {
  const std::string text = table.text(key, fallback);
  const std::size_t colon = text.rfind(':');
  ListenAddress address;
  unsigned port = 0;
  const char* const end = text.data() + text.size();
  const bool is_number = colon != std::string::npos && colon + 1 < text.size() &&
                         std::from_chars(text.data() + colon + 1, end, port).ptr == end;
  if (!is_number || port > 65535 || colon == 0) {
    table.problem(key, "must be a numeric address and a port, as \"127.0.0.1:7443\" or \"[::1]:7443\"");
    return address;
  }
  address.host = text.substr(0, colon);
  if (address.host.starts_with('[') && address.host.ends_with(']')) {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  address.port = static_cast<std::uint16_t>(port);
  if (!numeric_address(address.host, address.port)) {
    table.problem(key, "must be a numeric address, not a name: 127.0.0.1 for this machine, 0.0.0.0 for all");
  }
  return address;
}

void check_clear_text(ConfigTable& table, const ListenAddress& listen, std::string_view what_to_do) {
  const auto address = numeric_address(listen.host, listen.port);
  if (!address || address->is_loopback()) return;
  table.problem("listen", "would show every token to the network in clear text; " + std::string{what_to_do});
}

void check_open(ConfigTable& table, const ListenAddress& listen, std::string_view what_to_do) {
  const auto address = numeric_address(listen.host, listen.port);
  if (!address || address->is_loopback()) return;
  table.problem("listen", "would answer everybody on the network; " + std::string{what_to_do});
}

}  // namespace windlass
