#include "protocol/websocket/upgrade.h"

#include <openssl/evp.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <charconv>
#include <string_view>

#include "protocol/base/check.h"

namespace windlass::websocket {
namespace {

namespace http = boost::beast::http;
using http::field;

constexpr std::string_view kRequestBegins = "GET ";
constexpr std::string_view kResponseBegins = "HTTP/1.1 ";
constexpr std::string_view kHeadEnds = "\r\n\r\n";
constexpr std::size_t kKeyBytes = 24;  // sixteen bytes as base64

std::string_view view(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

// A peer that speaks something else, TLS for example, is told so at its first bytes and not at its eight
// thousandth.
bool may_begin_with(BytesView head, std::string_view begins) {
  const std::size_t size = std::min(head.size(), begins.size());
  return head.substr(0, size) == begins.substr(0, size);
}

template <class Parser>
bool parse_head(BytesView head, Parser& parser) {
  boost::beast::error_code failure;
  parser.header_limit(static_cast<std::uint32_t>(head.size()));
  parser.put(boost::asio::buffer(head.data(), head.size()), failure);
  return !failure && parser.is_header_done();
}

// Whether some line of this field lists `token`.
bool lists(const http::fields& fields, field name, std::string_view token) {
  const auto [begin, end] = fields.equal_range(name);
  return std::any_of(begin, end, [&](const auto& line) {
    return http::token_list{line.value()}.exists({token.data(), token.size()});
  });
}

std::optional<std::string> optional_value(const http::fields& fields, field name) {
  const auto at = fields.find(name);
  if (at == fields.end()) return std::nullopt;
  return std::string{view(at->value())};
}

bool is_base64(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
}

bool is_key(std::string_view text) {
  return text.size() == kKeyBytes && text.ends_with("==") &&
         std::all_of(text.begin(), text.end() - 2, is_base64);
}

template <std::size_t size>
std::string base64(const std::array<std::uint8_t, size>& bytes) {
  std::array<unsigned char, (size + 2) / 3 * 4 + 1> text{};  // OpenSSL ends it with a zero
  const int length = EVP_EncodeBlock(text.data(), bytes.data(), static_cast<int>(size));
  return {text.begin(), text.begin() + length};
}

// RFC 6455, 4.2.2: proof that the server read this very request. SHA-1 is the protocol's; nothing secret
// rests on it.
std::string accept_value(std::string_view key) {
  const std::string text = std::string{key} + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<std::uint8_t, 20> digest{};
  unsigned size = 0;
  CHECK(EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr) == 1);
  CHECK(size == digest.size());
  return base64(digest);
}

std::string_view phrase(HttpStatus status) {
  switch (status) {
    case HttpStatus::SwitchingProtocols:
      return "Switching Protocols";
    case HttpStatus::BadRequest:
      return "Bad Request";
    case HttpStatus::Forbidden:
      return "Forbidden";
    case HttpStatus::NotFound:
      return "Not Found";
    case HttpStatus::UpgradeRequired:
      return "Upgrade Required";
    case HttpStatus::HeadTooLarge:
      return "Request Header Fields Too Large";
    case HttpStatus::ServiceUnavailable:
      return "Service Unavailable";
  }
  return "";
}

// Seconds only: a date would need a clock, and servers that mean us send seconds.
std::optional<Duration> retry_after_of(const http::fields& fields) {
  const std::string text = optional_value(fields, field::retry_after).value_or("");
  std::uint32_t count = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (text.empty() || end != text.data() + text.size()) return std::nullopt;
  if (failure != std::errc{})
    return failure == std::errc::result_out_of_range ? std::optional{limits::kRetryAfterMax} : std::nullopt;
  return std::min<Duration>(seconds{count}, limits::kRetryAfterMax);
}

Error peer_error(const char* reason, SourceLine where = SourceLine::here()) {
  return {ErrorCode::ProtoWebSocket, Blame::Peer, reason, where};
}

}  // namespace

HeadBuffer::HeadBuffer(std::size_t bytes_max) : bytes_max_(bytes_max) {
  CHECK(bytes_max <= 0xFFFF);
}

HeadBuffer::Progress HeadBuffer::take(std::span<char>& input) {
  const std::size_t held = head_.size();
  const std::size_t taken = std::min(input.size(), bytes_max_ - held);
  head_.append(input.data(), taken);
  const std::size_t from = held < kHeadEnds.size() ? 0 : held - kHeadEnds.size() + 1;
  const std::size_t at = head_.find(kHeadEnds, from);
  if (at == Bytes::npos) {
    input = input.subspan(taken);
    return head_.size() == bytes_max_ ? Progress::TooLarge : Progress::More;
  }
  head_.resize(at + kHeadEnds.size());
  input = input.subspan(head_.size() - held);
  return Progress::Whole;
}

Result<std::optional<UpgradeRequest>> UpgradeRequestReader::handle_bytes(std::span<char>& input) {
  const auto progress = buffer_.take(input);
  if (!may_begin_with(buffer_.head(), kRequestBegins)) {
    return refuse(HttpStatus::BadRequest, "only GET can open a WebSocket connection");
  }
  if (progress == HeadBuffer::Progress::TooLarge) {
    return refuse(HttpStatus::HeadTooLarge, "the request head is larger than allowed");
  }
  if (progress == HeadBuffer::Progress::More) return std::optional<UpgradeRequest>{};
  return judge();
}

//= TRN-7
Error UpgradeRequestReader::refuse(HttpStatus status, const char* reason, SourceLine where) {
  refusal_status_ = status;
  return peer_error(reason, where);
}

Result<std::optional<UpgradeRequest>> UpgradeRequestReader::judge() {
  http::request_parser<http::empty_body> parser;
  if (!parse_head(buffer_.head(), parser))
    return refuse(HttpStatus::BadRequest, "the request is not HTTP/1.1");
  const auto& head = parser.get();
  if (head.version() != 11) return refuse(HttpStatus::BadRequest, "the request is not HTTP/1.1");

  // A second line of one of these could mean something else to a proxy than to us.
  for (const field name : {field::host, field::origin, field::authorization, field::sec_websocket_key,
                           field::sec_websocket_version, field::content_length}) {
    if (head.count(name) > 1)
      return refuse(HttpStatus::BadRequest, "a header that must be single is repeated");
  }
  if (head.count(field::host) == 0) return refuse(HttpStatus::BadRequest, "the Host header is missing");
  const bool has_body = head.count(field::transfer_encoding) > 0 ||
                        (head.count(field::content_length) > 0 && view(head[field::content_length]) != "0");
  if (has_body) return refuse(HttpStatus::BadRequest, "an upgrade request has no body");

  UpgradeRequest request;
  request.target = std::string{view(head.target())};
  request.host = std::string{view(head[field::host])};
  request.origin = optional_value(head, field::origin);
  request.authorization = optional_value(head, field::authorization);
  const auto& origins = rules_.origins_allowed;
  //= TRN-2
  if (request.origin && std::find(origins.begin(), origins.end(), *request.origin) == origins.end()) {
    return refuse(HttpStatus::Forbidden, "this Origin may not connect");
  }
  if (!request.target.starts_with('/')) return refuse(HttpStatus::BadRequest, "the target is not a path");
  //= TRN-6
  const std::string path = request.target.substr(0, request.target.find('?'));
  if (std::find(rules_.paths.begin(), rules_.paths.end(), path) == rules_.paths.end()) {
    return refuse(HttpStatus::NotFound, "nothing is served at this path");
  }
  if (!lists(head, field::upgrade, "websocket") || !lists(head, field::connection, "upgrade")) {
    return refuse(HttpStatus::UpgradeRequired, "the request does not ask for WebSocket");
  }
  if (view(head[field::sec_websocket_version]) != "13") {
    return refuse(HttpStatus::UpgradeRequired, "the WebSocket version is not 13");
  }
  request.key = std::string{view(head[field::sec_websocket_key])};
  if (!is_key(request.key))
    return refuse(HttpStatus::BadRequest, "Sec-WebSocket-Key is not sixteen bytes in base64");
  return std::optional{std::move(request)};
}

Bytes accept_response(const UpgradeRequest& request) {
  return "HTTP/1.1 101 Switching Protocols\r\n"
         "Upgrade: websocket\r\n"
         "Connection: Upgrade\r\n"
         "Sec-WebSocket-Accept: " +
         accept_value(request.key) + "\r\n\r\n";
}

Bytes refusal_response(HttpStatus status, std::optional<Duration> retry_after) {
  Bytes out = "HTTP/1.1 " + std::to_string(static_cast<unsigned>(status)) + ' ';
  out += phrase(status);
  out += "\r\nContent-Length: 0\r\n";
  if (status == HttpStatus::UpgradeRequired) {
    out += "Connection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
  } else {
    out += "Connection: close\r\n";
  }
  if (retry_after) {
    out += "Retry-After: " + std::to_string(std::chrono::ceil<seconds>(*retry_after).count()) + "\r\n";
  }
  return out + "\r\n";
}

Result<Bytes> upgrade_request(const UpgradeAddress& address, const UpgradeNonce& nonce) {
  const auto is_visible = [](std::string_view text, bool spaces) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [spaces](char c) {
      return (c > ' ' && c <= '~') || (spaces && c == ' ');
    });
  };
  const bool sound = is_visible(address.host, false) && is_visible(address.target, false) &&
                     address.target.starts_with('/') && address.target.find('#') == std::string::npos &&
                     is_visible(address.origin.value_or("none"), false) &&
                     is_visible(address.authorization.value_or("none"), true);
  if (!sound) return Error{ErrorCode::ProtoWebSocket, Blame::Local, "a field does not fit an HTTP request"};

  Bytes out =
      "GET " + address.target + " HTTP/1.1\r\nHost: " + address.host +
      "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " +
      base64(nonce) + "\r\n";
  if (address.origin) out += "Origin: " + *address.origin + "\r\n";
  if (address.authorization) out += "Authorization: " + *address.authorization + "\r\n";
  return out + "\r\n";
}

Result<std::optional<UpgradeReply>> UpgradeResponseReader::handle_bytes(std::span<char>& input) {
  const auto progress = buffer_.take(input);
  if (!may_begin_with(buffer_.head(), kResponseBegins))
    return peer_error("the peer does not answer in HTTP/1.1");
  if (progress == HeadBuffer::Progress::TooLarge)
    return peer_error("the response head is larger than allowed");
  if (progress == HeadBuffer::Progress::More) return std::optional<UpgradeReply>{};

  http::response_parser<http::empty_body> parser;
  if (!parse_head(buffer_.head(), parser)) return peer_error("the peer does not answer in HTTP/1.1");
  const auto& head = parser.get();
  UpgradeReply reply{static_cast<std::uint16_t>(head.result_int()), std::nullopt};
  if (!reply.is_accepted()) {
    reply.retry_after = retry_after_of(head);
    return std::optional{reply};
  }
  if (!lists(head, field::upgrade, "websocket") || !lists(head, field::connection, "upgrade")) {
    return peer_error("the peer switched to something that is not WebSocket");
  }
  const bool proved = head.count(field::sec_websocket_accept) == 1 &&
                      view(head[field::sec_websocket_accept]) == accept_value(base64(nonce_));
  if (!proved) return peer_error("Sec-WebSocket-Accept does not answer our key");
  //= TRN-3
  //= TRN-6
  if (head.count(field::sec_websocket_extensions) > 0 || head.count(field::sec_websocket_protocol) > 0) {
    return peer_error("the peer chose an extension or subprotocol that was not offered");
  }
  return std::optional{reply};
}

}  // namespace windlass::websocket
