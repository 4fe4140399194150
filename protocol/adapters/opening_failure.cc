#include "protocol/adapters/opening_failure.h"

#include "protocol/websocket/upgrade.h"

namespace windlass {

std::string_view to_string(OpeningFailure failure) {
  static constexpr std::array<std::string_view, kOpeningFailures> kNames = {
      "peer_left", "tls",      "tls_deadline", "http_400",      "http_403",  "http_404",
      "http_426",  "http_431", "http_503",     "http_deadline", "displaced", "full"};
  return kNames[static_cast<std::size_t>(failure)];
}

OpeningFailure opening_failure_of(std::uint16_t http_status) {
  using websocket::HttpStatus;
  switch (static_cast<HttpStatus>(http_status)) {
    case HttpStatus::Forbidden:
      return OpeningFailure::HttpForbidden;
    case HttpStatus::NotFound:
      return OpeningFailure::HttpNotFound;
    case HttpStatus::UpgradeRequired:
      return OpeningFailure::HttpUpgradeRequired;
    case HttpStatus::HeadTooLarge:
      return OpeningFailure::HttpHeadTooLarge;
    case HttpStatus::ServiceUnavailable:
      return OpeningFailure::HttpUnavailable;
    case HttpStatus::SwitchingProtocols:
    case HttpStatus::BadRequest:
      break;
  }
  return OpeningFailure::HttpBadRequest;
}

}  // namespace windlass
