// Hex digits to bytes, for what cases and examples write so.
#pragma once

#include <string>
#include <string_view>

namespace windlass::conformance {

// Of digits that a schema has checked.
inline std::string hex_bytes(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string{digits.substr(i, 2)}, nullptr, 16));
  }
  return bytes;
}

}  // namespace windlass::conformance
