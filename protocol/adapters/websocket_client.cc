#include "protocol/adapters/websocket_client.h"

#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <charconv>
#include <cstring>
#include <utility>

#include "protocol/base/check.h"

namespace windlass {
namespace {

using Tcp = boost::asio::ip::tcp;

Error config_error(std::string reason, SourceLine where = SourceLine::here()) {
  return {ErrorCode::Internal, Blame::Local, std::move(reason), where};
}

std::string host_header(const ClientAddress& address) {
  const bool six = address.host.find(':') != std::string::npos;
  const std::string host = six ? '[' + address.host + ']' : address.host;
  const std::uint16_t usual = address.secure ? 443 : 80;
  return address.port == usual ? host : host + ':' + std::to_string(address.port);
}

Result<Bytes> make_request(const ClientOptions& options, const websocket::UpgradeNonce& nonce) {
  return websocket::upgrade_request(
      {host_header(options.address), options.address.target, options.origin, options.authorization}, nonce);
}

SocketAddress from_endpoint(const Tcp::endpoint& endpoint) {
  SocketAddress address;
  std::memcpy(&address.storage, endpoint.data(), endpoint.size());
  address.size = static_cast<socklen_t>(endpoint.size());
  return address;
}

}  // namespace

struct WebSocketClient::Lookup {
  explicit Lookup(EventLoop& loop) : resolver(loop.context()) {}
  boost::asio::ip::basic_resolver<Tcp, boost::asio::io_context::executor_type> resolver;
  WebSocketClient* client = nullptr;  // null once it was given up
};

Result<ClientAddress> parse_address(std::string_view url) {
  const Error wrong =
      config_error("'" + std::string{url} + "' is not an address such as wss://host:port/path");
  ClientAddress address;
  if (url.starts_with("wss://")) {
    url.remove_prefix(6);
  } else if (url.starts_with("ws://")) {
    url.remove_prefix(5);
    address.secure = false;
  } else {
    return wrong;
  }
  const std::size_t slash = std::min(url.find_first_of("/?"), url.size());
  std::string_view authority = url.substr(0, slash);
  if (slash < url.size()) address.target = url.substr(slash);
  if (address.target.front() == '?') address.target.insert(0, 1, '/');
  std::string_view host = authority;
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return wrong;
    host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
  } else if (const std::size_t colon = authority.find(':'); colon != std::string_view::npos) {
    host = authority.substr(0, colon);
    port = authority.substr(colon);
  }
  address.host = host;
  address.port = address.secure ? 443 : 80;
  if (!port.empty()) {
    const char* const end = port.data() + port.size();
    const auto [stop, failure] = std::from_chars(port.data() + 1, end, address.port);
    if (port.front() != ':' || failure != std::errc{} || stop != end || address.port == 0) return wrong;
  }
  const auto fits = [](char c) { return c > ' ' && c <= '~' && c != '@' && c != '#'; };
  if (host.empty() || !std::all_of(url.begin(), url.end(), fits)) return wrong;
  return address;
}

Result<std::unique_ptr<WebSocketClient>> WebSocketClient::create(EventLoop& loop, ClientOptions options,
                                                                 ConnectionEvents& events) {
  if (options.address.secure && options.tls == nullptr) {
    return config_error("a wss:// address needs TLS options");
  }
  if (auto request = make_request(options, {}); !request) return request.error();
  return std::unique_ptr<WebSocketClient>{new WebSocketClient{loop, std::move(options), events}};
}

WebSocketClient::WebSocketClient(EventLoop& loop, ClientOptions options, ConnectionEvents& events)
    : loop_(loop), options_(std::move(options)), table_(loop, events), timer_(loop, *this) {
  loop_.add_turn_end(TurnPhase::Reap, *this);
}

WebSocketClient::~WebSocketClient() {
  loop_.remove_turn_end(TurnPhase::Reap, *this);
  give_up();
}

void WebSocketClient::dial(ConnectionId id) {
  give_up();
  dialing_ = id;
  failure_.clear();
  if (auto address = numeric_address(options_.address.host, options_.address.port)) {
    handle_resolved({*address}, {});
  } else {
    resolve();
  }
}

void WebSocketClient::give_up() {
  if (lookup_) {
    lookup_->client = nullptr;
    lookup_->resolver.cancel();
    lookup_.reset();
  }
  connecting_.reset();
  timer_.set(std::nullopt);
  dialing_.reset();
  if (opening_) {
    WebSocketConnection* const connection = table_.find(*opening_);
    if (connection != nullptr && connection->is_opening()) connection->forget();
    opening_.reset();
  }
}

void WebSocketClient::resolve() {
  lookup_ = std::make_shared<Lookup>(loop_);
  lookup_->client = this;
  timer_.set(loop_.now().steady + options_.resolve_deadline);
  // Always this machine (RFC 6761, 6.3), also where no file and no server says so.
  if (options_.address.host == "localhost") {
    loop_.post([lookup = lookup_, port = options_.address.port] {
      if (lookup->client == nullptr) return;
      lookup->client->handle_resolved({from_endpoint({boost::asio::ip::address_v4::loopback(), port}),
                                       from_endpoint({boost::asio::ip::address_v6::loopback(), port})},
                                      {});
    });
    return;
  }
  lookup_->resolver.async_resolve(
      options_.address.host, std::to_string(options_.address.port),
      [lookup = lookup_](const boost::system::error_code& error, const Tcp::resolver::results_type& results) {
        if (lookup->client == nullptr) return;
        std::vector<SocketAddress> addresses;
        for (const auto& result : results) {
          if (addresses.size() == limits::kDialAddressesMax) break;
          addresses.push_back(from_endpoint(result.endpoint()));
        }
        lookup->client->handle_resolved(std::move(addresses), error ? error.message() : std::string{});
      });
}

void WebSocketClient::handle_resolved(std::vector<SocketAddress> addresses, const std::string& failure) {
  lookup_.reset();
  addresses_ = std::move(addresses);
  std::reverse(addresses_.begin(), addresses_.end());
  if (addresses_.empty()) {
    return fail("the name '" + options_.address.host +
                "' has no address: " + (failure.empty() ? "none was found" : failure));
  }
  connect_next();
}

void WebSocketClient::connect_next() {
  connecting_.reset();
  while (!addresses_.empty()) {
    trying_ = addresses_.back();
    addresses_.pop_back();
    if (!options_.address.secure && !options_.clear_text_anywhere && !trying_.is_loopback()) {
      failure_ = "clear text to " + trying_.text() + " is not allowed; use wss://, or allow it explicitly";
      continue;
    }
    auto socket = begin_connect(trying_);
    if (!socket) {
      failure_ = socket.error().reason;
      continue;
    }
    timer_.set(loop_.now().steady + options_.connect_deadline);
    connecting_ =
        std::make_unique<Readiness>(loop_, std::move(*socket), static_cast<ReadinessEvents&>(*this));
    return connecting_->wait_writable();
  }
  fail(failure_);
}

void WebSocketClient::on_writable() {
  if (const int error = connect_error(connecting_->fd()); error != 0) {
    failure_ = "cannot connect to " + trying_.text() + ": " + error_text(error);
    return connect_next();
  }
  handle_connected();
}

void WebSocketClient::handle_connected() {
  const ConnectionId id = *std::exchange(dialing_, std::nullopt);
  timer_.set(std::nullopt);
  end_when_silent(connecting_->fd(), options_.connection.dead_link_after);
  SocketStream::Parts parts{std::exchange(connecting_, nullptr)->release(), nullptr, {}};
  if (options_.address.secure) {
    SslPointer ssl = options_.tls->connect(options_.address.host);
    if (!ssl) {
      dialing_ = id;
      return fail("TLS cannot check a certificate against the name '" + options_.address.host + "'");
    }
    parts.tls = std::make_unique<TlsPump>(std::move(ssl));
  }
  websocket::UpgradeNonce nonce{};
  CHECK(RAND_bytes(nonce.data(), static_cast<int>(nonce.size())) == 1);
  auto request = make_request(options_, nonce);
  CHECK(request.has_value());  // create() made one of the same fields
  opening_ = id;
  table_.add(
      {id, websocket::Side::Client, std::move(parts),
       std::make_unique<ClientOpening>(std::move(*request), nonce), PeerInfo{trying_.text(), {}, {}, {}}},
      options_.connection);
}

void WebSocketClient::on_timer() {
  if (lookup_) {
    lookup_->client = nullptr;
    lookup_->resolver.cancel();
    lookup_.reset();
    return fail("resolving the name '" + options_.address.host + "' took too long");
  }
  failure_ = "connecting to " + trying_.text() + " took too long";
  connect_next();
}

void WebSocketClient::fail(std::string reason) {
  timer_.set(std::nullopt);
  failed_.push_back({*std::exchange(dialing_, std::nullopt), std::move(reason)});
  loop_.turn_again();
}

void WebSocketClient::on_turn_end(TurnPhase /*phase*/) {
  if (failed_.empty()) return;
  loop_.turn_again();
  for (const Failed& failed : std::exchange(failed_, {})) {
    table_.events().on_closed(failed.id,
                              {static_cast<std::uint16_t>(websocket::CloseCode::Abnormal), failed.reason});
  }
}

}  // namespace windlass
