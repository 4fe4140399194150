#include "protocol/adapters/opening.h"

#include <utility>

namespace windlass {

Opening::Step ServerOpening::handle_bytes(std::span<char>& input, Bytes& out) {
  auto request = reader_.handle_bytes(input);
  if (!request) {
    const auto status = reader_.refusal_status();
    out += websocket::refusal_response(status);
    return {State::Refused, request.error().reason, static_cast<std::uint16_t>(status)};
  }
  if (!*request) return {};
  //= TRN-7
  if (gate_.retry_after) {
    const auto status = websocket::HttpStatus::ServiceUnavailable;
    out += websocket::refusal_response(status, gate_.retry_after);
    return {State::Refused, "this server is draining", static_cast<std::uint16_t>(status), gate_.retry_after};
  }
  out += websocket::accept_response(**request);
  return {State::Open};
}

Opening::Step ClientOpening::handle_bytes(std::span<char>& input, Bytes& /*out*/) {
  const auto reply = reader_.handle_bytes(input);
  if (!reply) return {State::Refused, reply.error().reason};
  if (!*reply) return {};
  if ((*reply)->is_accepted()) return {State::Open};
  return {State::Refused,
          "the server refused the upgrade with HTTP status " + std::to_string((*reply)->status),
          (*reply)->status, (*reply)->retry_after};
}

}  // namespace windlass
