// Why an accepted connection never opened, for those who count it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace windlass {

enum class OpeningFailure : std::uint8_t {
  PeerLeft,
  Tls,  // it spoke no TLS, or showed a certificate that is not taken
  TlsDeadline,
  HttpBadRequest,
  HttpForbidden,  // its Origin
  HttpNotFound,
  HttpUpgradeRequired,
  HttpHeadTooLarge,
  HttpUnavailable,  // this server is draining
  HttpDeadline,
  Displaced,  // too many were opening, and this one had been for longest
  Full,       // no more connections are taken
};
inline constexpr std::size_t kOpeningFailures = static_cast<std::size_t>(OpeningFailure::Full) + 1;
using OpeningFailures = std::array<std::uint64_t, kOpeningFailures>;  // how often each came

std::string_view to_string(OpeningFailure failure);  // as a metric's label, "http_403"
OpeningFailure opening_failure_of(std::uint16_t http_status);

}  // namespace windlass
