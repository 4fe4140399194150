// What a request calls the server by, as its Host header or its target says.
#pragma once

#include <string_view>

namespace windlass {

// Of "name:80", "127.0.0.1", "[::1]:80", "name.".
std::string_view name_of_host(std::string_view host);

// An address, "localhost" or a name under it. Nobody can have a web page of these names that leads here.
bool is_own_name(std::string_view name);

}  // namespace windlass
