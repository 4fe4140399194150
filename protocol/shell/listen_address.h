// Where a service listens, as people write it in settings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/shell/config_reader.h"

namespace windlass {

struct ListenAddress {
  std::string host = "127.0.0.1";  // numeric
  std::uint16_t port = 0;
};

// "127.0.0.1:7443" or "[::1]:7443".
ListenAddress read_listen_address(ConfigTable& table, std::string_view key, std::string_view fallback);

// What listening would refuse, so that it is known before anything is opened.
void check_clear_text(ConfigTable& table, const ListenAddress& listen, std::string_view what_to_do);

// Likewise where nobody is asked for a token.
void check_open(ConfigTable& table, const ListenAddress& listen, std::string_view what_to_do);

}  // namespace windlass
