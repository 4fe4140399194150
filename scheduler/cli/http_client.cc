#include "scheduler/cli/http_client.h"

#include <openssl/err.h>
#include <openssl/sslerr.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <charconv>
#include <utility>

namespace windlass::cli {

struct Place {
  bool is_tls = false;
  std::string host;
  std::string port;
};

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using beast::error_code;

constexpr std::uint64_t kAnswerBytesMax = 256ULL * 1024 * 1024;

Error refusal(std::string reason) {
  return {ErrorCode::Internal, Blame::Local, std::move(reason)};
}

Result<Place> parse_url(std::string_view url) {
  const Error error = refusal("the address '" + std::string{url} +
                              "' is not of the form http://HOST:PORT or https://HOST:PORT");
  Place place;
  if (url.starts_with("https://")) {
    place.is_tls = true;
    url.remove_prefix(8);
  } else if (url.starts_with("http://")) {
    url.remove_prefix(7);
  } else {
    return error;
  }
  if (url.ends_with('/')) url.remove_suffix(1);
  place.port = place.is_tls ? "443" : "80";
  std::size_t colon = url.rfind(':');
  if (url.starts_with('[')) {
    const std::size_t end = url.find(']');
    if (end == std::string_view::npos) return error;
    place.host = url.substr(1, end - 1);
    colon = end + 1 < url.size() ? end + 1 : std::string_view::npos;
    if (colon != std::string_view::npos && url[colon] != ':') return error;
  } else {
    place.host = url.substr(0, colon);
  }
  if (colon != std::string_view::npos) {
    const std::string_view port = url.substr(colon + 1);
    std::uint16_t number = 0;
    const auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (failed != std::errc{} || end != port.data() + port.size() || number == 0) return error;
    place.port = port;
  }
  if (place.host.empty() || place.host.find_first_of("/?#@ ") != std::string::npos) return error;
  return place;
}

// What happened, where, and what to do about it.
std::string explain(const ClientOptions& options, const Place& place, error_code error, bool has_connected) {
  const std::string where = "the scheduler at " + options.url + " cannot be reached: ";
  if (error == asio::error::connection_refused) {
    return where + "nothing listens there; start it, or give the address of its admin listener with --url";
  }
  if (!has_connected) {
    return where + (error == beast::error::timeout ? "no answer came in time" : error.message()) +
           "; give the address of its admin listener with --url";
  }
  if (error == beast::error::timeout) return where + "no answer came in time; see --patience";
  if (!place.is_tls) {
    return where + "it ended the connection without an answer (" + error.message() +
           "); if it serves TLS, write https:// and give --ca, and if this is the port for workers, give "
           "that "
           "of its admin listener";
  }
  if (error.category() != asio::error::get_ssl_category()) {
    return where + error.message() + "; is it the admin listener's address?";
  }
  // Whatever does not begin as TLS does.
  const bool is_clear_text =
      ERR_GET_REASON(static_cast<unsigned long>(error.value())) == SSL_R_WRONG_VERSION_NUMBER;
  if (is_clear_text) return where + "it does not speak TLS; write http:// instead of https://";
  return where + error.message() + "; " +
         (options.authority_file.empty()
              ? "if its authority is your own, give --ca"
              : "is '" + options.authority_file + "' the authority of its certificate?");
}

}  // namespace

struct HttpClient::Inside {
  using Stream = beast::tcp_stream;
  using TlsStream = beast::ssl_stream<beast::tcp_stream>;

  // Runs one operation to its end. The stream's own deadline ends it in time.
  template <class Begin>
  error_code run(const Begin& begin) {
    error_code result;
    begin([&result](error_code error, auto&&...) { result = error; });
    context.restart();
    context.run();
    return result;
  }

  template <class Any>
  error_code exchange(Any& stream, const http::request<http::string_body>& request,
                      ClientResponse& response) {
    if (auto error = run([&](auto done) { http::async_write(stream, request, done); })) return error;
    http::response_parser<http::string_body> parser;
    parser.body_limit(kAnswerBytesMax);
    beast::flat_buffer buffer;
    if (auto error = run([&](auto done) { http::async_read(stream, buffer, parser, done); })) return error;
    response.status = parser.get().result_int();
    response.body = std::move(parser.get().body());
    return {};
  }

  error_code connect(Stream& stream) {
    error_code error;
    asio::ip::tcp::resolver resolver{context};
    // Always this machine (RFC 6761, 6.3), also where no file and no server says so.
    const std::string host = place.host == "localhost" ? "127.0.0.1" : place.host;
    const auto addresses = resolver.resolve(host, place.port, error);
    if (error) return error;
    return run([&](auto done) { stream.async_connect(addresses, done); });
  }

  ClientOptions options;
  Place place;
  asio::io_context context{1};
  asio::ssl::context tls{asio::ssl::context::tls_client};
};

HttpClient::HttpClient(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}

HttpClient::~HttpClient() = default;

Result<std::unique_ptr<HttpClient>> HttpClient::create(ClientOptions options) {
  auto place = parse_url(options.url);
  if (!place) return place.error();
  auto inside = std::make_unique<Inside>();
  inside->place = std::move(*place);
  inside->options = std::move(options);
  if (inside->place.is_tls) {
    error_code error;
    const std::string& file = inside->options.authority_file;
    if (file.empty()) {
      inside->tls.set_default_verify_paths(error);
    } else {
      inside->tls.load_verify_file(file, error);
    }
    if (error) return refusal("the authority file '" + file + "' cannot be used: " + error.message());
    inside->tls.set_verify_mode(asio::ssl::verify_peer, error);
  }
  return std::unique_ptr<HttpClient>{new HttpClient{std::move(inside)}};
}

Result<ClientResponse> HttpClient::ask(const ClientRequest& request) {
  Inside& inside = *inside_;
  http::request<http::string_body> message;
  message.version(11);
  message.method_string(request.method);
  message.target(request.target);
  message.set(http::field::host, inside.place.host);
  message.set(http::field::connection, "close");
  if (!inside.options.token.empty()) {
    message.set(http::field::authorization, "Bearer " + inside.options.token);
  }
  if (!request.body.empty()) message.set(http::field::content_type, "application/json");
  message.body() = request.body;
  message.prepare_payload();

  const auto patience = inside.options.patience + request.wait;
  ClientResponse response;
  error_code error;
  Inside::TlsStream stream{inside.context, inside.tls};
  Inside::Stream& tcp = stream.next_layer();
  tcp.expires_after(patience);
  error = inside.connect(tcp);
  const bool has_connected = !error;
  if (!error && inside.place.is_tls) {
    SSL_set_tlsext_host_name(stream.native_handle(), inside.place.host.c_str());
    stream.set_verify_callback(asio::ssl::host_name_verification{inside.place.host}, error);
    if (!error) {
      error = inside.run([&](auto done) { stream.async_handshake(asio::ssl::stream_base::client, done); });
    }
    if (!error) error = inside.exchange(stream, message, response);
  } else if (!error) {
    error = inside.exchange(tcp, message, response);
  }
  if (!error) return response;
  return Error{error == beast::error::timeout ? ErrorCode::Timeout : ErrorCode::Internal, Blame::Peer,
               explain(inside.options, inside.place, error, has_connected)};
}

}  // namespace windlass::cli
