#include "protocol/http/http_reader.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstddef>
#include <iterator>
#include <utility>

#include "protocol/base/limits.h"

namespace windlass {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

std::string_view view(beast::string_view text) {
  return {text.data(), text.size()};
}

Problem problem_of(const beast::error_code& error, const HttpReaderOptions& options) {
  if (error == http::error::header_limit) {
    return {431, "E.HTTP.HEAD",
            "the request's head is larger than " + std::to_string(options.head_bytes_max) + " bytes"};
  }
  if (error == http::error::body_limit) {
    return {413, "E.LIMIT.FRAME",
            "the request's body is larger than " + std::to_string(options.body_bytes_max) +
                " bytes, which is the limit here"};
  }
  return {400, "E.HTTP.SYNTAX", "this is not an HTTP/1.1 request: " + error.message()};
}

}  // namespace

struct HttpReader::Parser {
  explicit Parser(const HttpReaderOptions& options) {
    request.header_limit(static_cast<std::uint32_t>(options.head_bytes_max));
    request.body_limit(options.body_bytes_max);
  }
  http::request_parser<http::string_body> request;
  bool is_head_told = false;
};

HttpReader::HttpReader(const HttpReaderOptions& options)
    : options_(options), parser_(std::make_unique<Parser>(options)) {}

HttpReader::~HttpReader() = default;

HttpReader::State HttpReader::handle_bytes(Bytes& input) {
  auto& request = parser_->request;
  std::size_t used = 0;
  State state = State::More;
  while (state == State::More) {
    if (request.is_header_done() && !std::exchange(parser_->is_head_told, true)) {
      state = read_head();
    } else if (request.is_done()) {
      state = State::Complete;
    } else {
      if (used == input.size()) break;
      beast::error_code error;
      used += request.put(boost::asio::buffer(input.data() + used, input.size() - used), error);
      if (error == http::error::need_more) break;
      if (error) state = refuse(problem_of(error, options_));
    }
  }
  input.erase(0, used);
  // The parser sees a head, a chunk's line or the trailers only as a whole, so they are kept here until they
  // are one. A body's bytes are always taken at once.
  if (state == State::More && input.size() > options_.head_bytes_max) {
    if (!request.is_header_done()) {
      return refuse(problem_of(http::make_error_code(http::error::header_limit), options_));
    }
    return refuse({400, "E.HTTP.SYNTAX",
                   "a chunk's line or the trailers are larger than " +
                       std::to_string(options_.head_bytes_max) + " bytes"});
  }
  return state;
}

HttpReader::State HttpReader::read_head() {
  const auto& message = parser_->request.get();
  head_ = {};
  request_ = {};
  head_.is_head_only = message.method() == http::verb::head;
  if (auto problem = head_problem()) return refuse(*std::move(problem));
  head_.is_last = !message.keep_alive();
  head_.has_body = !parser_->request.is_done();
  head_.body_bytes = parser_->request.content_length().value_or(0);
  head_.expects_continue = head_.has_body && message.version() >= 11 &&
                           beast::iequals(message[http::field::expect], "100-continue");
  read_token();
  request_.method = view(message.method_string());
  request_.target = view(message.target());
  request_.content_type = view(message[http::field::content_type]);
  request_.has_token = head_.has_token;
  // Now, because the parser adds trailers to the headers, where nobody looked at them.
  if (options_.keeps_headers) {
    for (const auto& field : message) {
      request_.headers.emplace_back(view(field.name_string()), view(field.value()));
    }
  }
  return State::Head;
}

// What the parser lets pass and we do not.
std::optional<Problem> HttpReader::head_problem() const {
  const auto& message = parser_->request.get();
  if (message.target().size() > limits::kHttpTargetBytesMax) {
    return Problem{414, "E.HTTP.HEAD",
                   "the target is longer than " + std::to_string(limits::kHttpTargetBytesMax) + " bytes"};
  }
  if (std::distance(message.begin(), message.end()) > std::ptrdiff_t{limits::kHttpHeadersMax}) {
    return Problem{431, "E.HTTP.HEAD",
                   "the request has more than " + std::to_string(limits::kHttpHeadersMax) + " headers"};
  }
  // Read in two ways, a request ends in two places: what one takes for its body is the next one's head.
  const std::size_t encodings = message.count(http::field::transfer_encoding);
  if (encodings > 0 && (encodings > 1 || message.version() < 11 ||
                        !beast::iequals(message[http::field::transfer_encoding], "chunked"))) {
    return Problem{400, "E.HTTP.SYNTAX", "the only transfer encoding known here is chunked, in HTTP/1.1"};
  }
  const std::size_t hosts = message.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && message.version() >= 11)) {
    return Problem{400, "E.HTTP.SYNTAX", "a request names its host, once"};
  }
  return std::nullopt;
}

void HttpReader::read_token() {
  const auto fields = parser_->request.get().equal_range(http::field::authorization);
  // Two tokens would leave open which one counts.
  if (fields.first == fields.second || std::next(fields.first) != fields.second) return;
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view value = view(fields.first->value());
  if (value.size() <= kScheme.size() ||
      !beast::iequals(fields.first->value().substr(0, kScheme.size()), kScheme))
    return;
  head_.has_token = true;
  head_.token = value.substr(kScheme.size());
}

std::size_t HttpReader::body_bytes() const {
  return parser_->request.get().body().size();
}

HttpRequest HttpReader::take() {
  request_.body = std::move(parser_->request.get().body());
  parser_ = std::make_unique<Parser>(options_);
  return std::exchange(request_, {});
}

void HttpReader::drop() {
  parser_ = std::make_unique<Parser>(options_);
  request_ = {};
}

HttpReader::State HttpReader::refuse(Problem problem) {
  problem_ = std::move(problem);
  return State::Refused;
}

}  // namespace windlass
