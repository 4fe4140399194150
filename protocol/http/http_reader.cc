#include "protocol/http/http_reader.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <cstddef>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>

#include "protocol/base/http_limits.h"
#include "protocol/base/limits.h"
#include "protocol/http/growing_body.h"

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
  if (error == http::error::bad_chunk_extension) {
    return {400, "E.HTTP.SYNTAX",
            "a chunk's extensions are larger than " + std::to_string(limits::kHttpChunkExtensionBytesMax) +
                " bytes"};
  }
  return {400, "E.HTTP.SYNTAX", "this is not an HTTP/1.1 request: " + error.message()};
}

// A line that goes on the next one: whoever reads it another way sees another head (RFC 9112, 5.2).
bool has_folded_line(std::string_view head) {
  return head.find("\r\n ") != std::string_view::npos || head.find("\r\n\t") != std::string_view::npos;
}

}  // namespace

struct HttpReader::Parser {
  explicit Parser(const HttpReaderOptions& options) {
    request.header_limit(static_cast<std::uint32_t>(options.head_bytes_max));
    request.body_limit(std::numeric_limits<std::uint64_t>::max());  // see body_problem
    request.on_chunk_header(on_chunk);
  }
  http::request_parser<GrowingBody> request;
  std::function<void(std::uint64_t, beast::string_view, beast::error_code&)> on_chunk =
      [](std::uint64_t, beast::string_view extensions, beast::error_code& error) {
        if (extensions.size() > limits::kHttpChunkExtensionBytesMax) {
          error = http::make_error_code(http::error::bad_chunk_extension);
        }
      };
  bool is_head_told = false;
};

HttpReader::HttpReader(const HttpReaderOptions& options)
    : options_(options), parser_(std::make_unique<Parser>(options)) {}

HttpReader::~HttpReader() = default;

HttpReader::State HttpReader::handle_bytes(Bytes& input) {
  std::size_t used = 0;
  const State state = read_more(input, used);
  input.erase(0, used);
  if (state != State::More) return state;
  // The parser sees a head, a chunk's line or the trailers only as a whole, so they are kept here until they
  // are one. A body's bytes are always taken at once.
  if (!parser_->request.is_header_done()) {
    if (input.size() <= options_.head_bytes_max) return state;
    return refuse(problem_of(http::make_error_code(http::error::header_limit), options_));
  }
  const std::size_t lines_max = std::min(options_.head_bytes_max, limits::kHttpChunkLinesBytesMax);
  if (input.size() <= lines_max) return state;
  return refuse({400, "E.HTTP.SYNTAX",
                 "a chunk's line or the trailers are larger than " + std::to_string(lines_max) + " bytes"});
}

HttpReader::State HttpReader::read_more(Bytes& input, std::size_t& used) {
  auto& request = parser_->request;
  while (true) {
    if (request.is_header_done() && !std::exchange(parser_->is_head_told, true)) {
      if (used > options_.head_bytes_max) {  // the parser counts each line for itself
        return refuse(problem_of(http::make_error_code(http::error::header_limit), options_));
      }
      if (has_folded_line(std::string_view{input}.substr(0, used))) {
        return refuse({400, "E.HTTP.SYNTAX", "a header goes on in the next line, which HTTP/1.1 forbids"});
      }
      return read_head();
    }
    if (auto problem = body_problem()) return refuse(*std::move(problem));
    if (request.is_done()) return State::Complete;
    if (used == input.size()) return State::More;
    beast::error_code error;
    used += request.put(boost::asio::buffer(input.data() + used, input.size() - used), error);
    if (error == http::error::need_more) return State::More;
    if (error) return refuse(problem_of(error, options_));
  }
}

std::optional<Problem> HttpReader::body_problem() const {
  if (is_streamed_ || !parser_->is_head_told) return std::nullopt;
  if (head_.body_bytes <= options_.body_bytes_max && body_bytes() <= options_.body_bytes_max) {
    return std::nullopt;
  }
  return Problem{413, "E.LIMIT.FRAME",
                 "the request's body is larger than " + std::to_string(options_.body_bytes_max) +
                     " bytes, which is the limit here"};
}

HttpReader::State HttpReader::read_head() {
  const auto& message = parser_->request.get();
  head_ = {};
  request_ = {};
  is_streamed_ = false;
  head_.is_head_only = message.method() == http::verb::head;
  if (auto problem = head_problem()) return refuse(*std::move(problem));
  head_.is_last = !message.keep_alive();
  head_.knows_chunks = message.version() >= 11;
  head_.has_body = !parser_->request.is_done();
  head_.body_bytes = parser_->request.content_length().value_or(0);
  head_.expects_continue = head_.has_body && message.version() >= 11 &&
                           beast::iequals(message[http::field::expect], "100-continue");
  read_token();
  request_.method = view(message.method_string());
  request_.content_type = view(message[http::field::content_type]);
  request_.has_token = head_.has_token;
  request_.has_body = head_.has_body;
  request_.body_bytes = head_.body_bytes;
  // Now, because the parser adds trailers to the headers, where nobody looked at them.
  if (options_.keeps_headers) {
    for (const auto& field : message) {
      request_.headers.emplace_back(view(field.name_string()), view(field.value()));
    }
  }
  if (auto problem = read_target()) return refuse(*std::move(problem));
  return State::Head;
}

// A target may name its host itself, as it does for a proxy. Then that name counts, and the Host header does
// not (RFC 9112, 3.2.2): whoever judges names must see the one that is meant.
std::optional<Problem> HttpReader::read_target() {
  const std::string_view target = view(parser_->request.get().target());
  const auto begins = [&](std::string_view scheme) {
    return target.size() >= scheme.size() && beast::iequals(target.substr(0, scheme.size()), scheme);
  };
  const std::size_t scheme = begins("http://") ? 7 : begins("https://") ? 8 : 0;
  const std::size_t end = std::min(target.find_first_of("/?#", scheme), target.size());
  request_.target = scheme > 0 && !target.substr(end).starts_with('/') ? "/" : "";
  request_.target += scheme > 0 ? target.substr(end) : target;
  const std::string_view host =
      scheme > 0 ? target.substr(scheme, end - scheme) : view(parser_->request.get()[http::field::host]);
  request_.host = host;
  if (scheme == 0) return std::nullopt;
  if (host.empty() || host.find('@') != std::string_view::npos) {
    return Problem{400, "E.HTTP.SYNTAX", "the target's host is empty or has a user's name before it"};
  }
  if (!options_.keeps_headers) return std::nullopt;
  std::erase_if(request_.headers, [](const auto& each) { return beast::iequals(each.first, "host"); });
  request_.headers.emplace_back("Host", host);
  return std::nullopt;
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
  if (message.count(http::field::content_length) > 1 ||
      view(message[http::field::content_length]).find(',') != std::string_view::npos) {
    return Problem{400, "E.HTTP.SYNTAX", "a request says its length once"};
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

std::string HttpReader::take_body() {
  return std::exchange(parser_->request.get().body(), {});
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
