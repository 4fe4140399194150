#include "protocol/http/http_response_reader.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <limits>
#include <utility>

#include "protocol/base/limits.h"
#include "protocol/http/growing_body.h"

namespace windlass {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr std::uint32_t kResponseHeadBytesMax = 64 * 1024;

}  // namespace

struct HttpResponseReader::Parser {
  explicit Parser(bool is_head_only) {
    response.header_limit(kResponseHeadBytesMax);
    response.body_limit(std::numeric_limits<std::uint64_t>::max());
    response.skip(is_head_only);
  }
  http::response_parser<GrowingBody> response;
  bool is_head_told = false;
};

HttpResponseReader::HttpResponseReader(bool is_head_only)
    : is_head_only_(is_head_only), parser_(std::make_unique<Parser>(is_head_only)) {}

HttpResponseReader::~HttpResponseReader() = default;

HttpResponseReader::State HttpResponseReader::handle_bytes(Bytes& input) {
  std::size_t used = 0;
  State state = State::More;
  while (state == State::More) {
    auto& response = parser_->response;
    if (response.is_header_done() && !parser_->is_head_told) {
      // 100 and its like come before the answer and are not it.
      if (response.get().result_int() / 100 == 1 && response.get().result_int() != 101) {
        parser_ = std::make_unique<Parser>(is_head_only_);
        continue;
      }
      state = read_head();
    } else if (response.is_done()) {
      state = State::Complete;
    } else {
      if (used == input.size()) break;
      beast::error_code error;
      used += response.put(boost::asio::buffer(input.data() + used, input.size() - used), error);
      if (error == http::error::need_more) break;
      if (error) state = refuse("the worker's answer is no HTTP/1.1: " + error.message());
    }
  }
  input.erase(0, used);
  if (state == State::More && input.size() > kResponseHeadBytesMax) {
    return refuse("a head or a chunk's line of the worker's answer is too long");
  }
  return state;
}

HttpResponseReader::State HttpResponseReader::handle_end() {
  beast::error_code error;
  if (!parser_->is_head_told) return refuse("the worker closed the connection before it answered");
  parser_->response.put_eof(error);
  if (error) return refuse("the worker closed the connection in the middle of its answer");
  return State::Complete;
}

HttpResponseReader::State HttpResponseReader::read_head() {
  parser_->is_head_told = true;
  const auto& message = parser_->response.get();
  if (message.result_int() == 101) return refuse("the worker wants another protocol");
  head_.status = static_cast<std::uint16_t>(message.result_int());
  for (const auto& field : message) {
    const auto name = field.name_string();
    const auto value = field.value();
    head_.headers.emplace_back(std::string{name.data(), name.size()},
                               std::string{value.data(), value.size()});
  }
  if (head_.headers.size() > limits::kHttpHeadersMax)
    return refuse("the worker's answer has too many headers");
  if (const auto bytes = parser_->response.content_length()) head_.body_bytes = *bytes;
  return State::Head;
}

std::string HttpResponseReader::take_body() {
  return std::exchange(parser_->response.get().body(), {});
}

HttpResponseReader::State HttpResponseReader::refuse(std::string problem) {
  problem_ = std::move(problem);
  return State::Refused;
}

}  // namespace windlass
