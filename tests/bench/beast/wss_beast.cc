#include "tests/bench/beast/wss_beast.h"

#include <boost/asio/async_result.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/ssl.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <utility>

#include "protocol/adapters/readiness.h"
#include "protocol/adapters/socket_stream.h"
#include "protocol/base/check.h"

namespace windlass::bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;
using Tcp = asio::ip::tcp;

// One echo conversation over any stream, kept alive by its own handlers.
template <class Stream>
class Conversation final : public std::enable_shared_from_this<Conversation<Stream>> {
 public:
  template <class... Arguments>
  explicit Conversation(Arguments&&... arguments) : websocket_(std::forward<Arguments>(arguments)...) {}
  auto& websocket() { return websocket_; }

  void accept() {
    websocket_.async_accept([self = this->shared_from_this()](const error_code& error) {
      if (!error) self->read();
    });
  }

 private:
  void read() {
    websocket_.async_read(buffer_, [self = this->shared_from_this()](const error_code& error, std::size_t) {
      if (!error) self->write();
    });
  }
  void write() {
    websocket_.text(websocket_.got_text());
    websocket_.async_write(buffer_.data(),
                           [self = this->shared_from_this()](const error_code& error, std::size_t) {
                             self->buffer_.clear();
                             if (!error) self->read();
                           });
  }

  beast::websocket::stream<Stream> websocket_;
  beast::flat_buffer buffer_;
};

class PlainBeast final : public EchoServer {
 public:
  PlainBeast(const std::string& certificate_file, const std::string& key_file) {
    tls_.use_certificate_chain_file(certificate_file);
    tls_.use_private_key_file(key_file, asio::ssl::context::pem);
    accept();
  }
  std::uint16_t port() const override { return acceptor_.local_endpoint().port(); }
  void run() override { context_.run(); }
  void stop() override { context_.stop(); }

 private:
  using Stream = beast::ssl_stream<beast::tcp_stream>;

  void accept() {
    acceptor_.async_accept([this](const error_code& error, Tcp::socket socket) {
      if (error) return;
      socket.set_option(Tcp::no_delay{true});
      const auto conversation = std::make_shared<Conversation<Stream>>(std::move(socket), tls_);
      conversation->websocket().next_layer().async_handshake(asio::ssl::stream_base::server,
                                                             [conversation](const error_code& failure) {
                                                               if (!failure) conversation->accept();
                                                             });
      accept();
    });
  }

  asio::io_context context_{1};
  asio::ssl::context tls_{asio::ssl::context::tls_server};
  Tcp::acceptor acceptor_{context_, {asio::ip::address_v4::loopback(), 0}};
};

class CorkedBeast;

constexpr std::size_t kCorkBytes = 64 * 1024;

// A handler that can only be moved, kept until there is input.
class Pending {
 public:
  virtual ~Pending() = default;
  virtual void finish() = 0;
};
template <class Function>
class PendingOf final : public Pending {
 public:
  explicit PendingOf(Function function) : function_(std::move(function)) {}
  void finish() override { function_(); }

 private:
  Function function_;
};

// What Beast reads from and writes to: writes complete at once and leave together when the input is drained.
class CorkedStream {
 public:
  using executor_type = asio::io_context::executor_type;

  CorkedStream(CorkedBeast& server, SocketStream::Parts parts)
      : state_(std::make_unique<State>(server, std::move(parts))) {}
  executor_type get_executor() const { return state_->executor(); }

  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    State& state = *state_;
    auto finish = [&state, buffers, done = std::forward<Handler>(handler)]() mutable {
      if (state.ended) return done(error_code{asio::error::eof}, 0);
      const std::size_t count = asio::buffer_copy(
          buffers,
          asio::buffer(state.input.data() + state.input_used, state.input.size() - state.input_used));
      state.input_used += count;
      done(error_code{}, count);
    };
    if (state.input_used < state.input.size() || state.ended) {
      asio::post(get_executor(), std::move(finish));
    } else {
      state.flush();
      state.reading = std::make_unique<PendingOf<decltype(finish)>>(std::move(finish));
      state.stream.wait_readable();
    }
  }

  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    const std::size_t count = asio::buffer_size(buffers);
    const std::size_t start = state_->output.size();
    state_->output.resize(start + count);
    asio::buffer_copy(asio::buffer(state_->output.data() + start, count), buffers);
    if (state_->output.size() >= kCorkBytes) state_->flush();
    asio::post(get_executor(),
               [done = std::forward<Handler>(handler), count]() mutable { done(error_code{}, count); });
  }

  struct State final : ReadinessEvents {
    State(CorkedBeast& owner, SocketStream::Parts parts);
    executor_type executor() const;
    void on_readable() override;
    void on_writable() override { flush(); }
    void flush();

    CorkedBeast& server;
    SocketStream stream;
    Bytes input;
    std::size_t input_used = 0;
    Bytes output;
    std::unique_ptr<Pending> reading;
    bool ended = false;
  };

 private:
  std::unique_ptr<State> state_;
};

template <class Handler>
[[maybe_unused]] void async_teardown(beast::role_type /*role*/, CorkedStream& stream, Handler&& handler) {
  asio::post(stream.get_executor(),
             [done = std::forward<Handler>(handler)]() mutable { done(error_code{}); });
}

[[maybe_unused]] void beast_close_socket(CorkedStream& /*stream*/) {}

[[maybe_unused]] void teardown(beast::role_type /*role*/, CorkedStream& /*stream*/, error_code& error) {
  error = {};
}

class CorkedBeast final : public EchoServer, private ReadinessEvents {
 public:
  explicit CorkedBeast(const TlsContext& tls) : tls_(tls) {
    auto listener = listen_on(*numeric_address("127.0.0.1", 0));
    CHECK(listener.has_value());
    port_ = local_address(listener->fd()).port();
    listener_ = std::make_unique<Readiness>(loop, std::move(*listener), static_cast<ReadinessEvents&>(*this));
    listener_->wait_readable();
  }
  std::uint16_t port() const override { return port_; }
  void run() override { loop.run(); }
  void stop() override { loop.stop(); }

  EventLoop loop;

 private:
  void on_readable() override {
    for (Accepted accepted = accept_one(listener_->fd()); accepted.socket.is_open();
         accepted = accept_one(listener_->fd())) {
      SocketStream::Parts parts{std::move(accepted.socket), std::make_unique<TlsPump>(tls_.accept()), {}};
      std::make_shared<Conversation<CorkedStream>>(*this, std::move(parts))->accept();
    }
    listener_->wait_readable();
  }
  void on_writable() override {}

  const TlsContext& tls_;
  std::uint16_t port_ = 0;
  std::unique_ptr<Readiness> listener_;
};

CorkedStream::State::State(CorkedBeast& owner, SocketStream::Parts parts)
    : server(owner), stream(owner.loop, std::move(parts), *this) {}

CorkedStream::executor_type CorkedStream::State::executor() const {
  return server.loop.context().get_executor();
}

void CorkedStream::State::on_readable() {
  const auto got = stream.read();
  input.assign(got.bytes.data(), got.bytes.size());
  input_used = 0;
  ended = got.state == SocketStream::ReadState::Ended || got.state == SocketStream::ReadState::Failed;
  if (input.empty() && !ended) return stream.wait_readable();
  if (const auto pending = std::move(reading)) pending->finish();
}

void CorkedStream::State::flush() {
  if (output.empty()) return;
  const auto written = stream.write(output);
  output.erase(0, written.bytes);
  if (written.state == SocketStream::WriteState::Blocked) stream.wait_writable();
}

}  // namespace

std::unique_ptr<EchoServer> plain_beast(const std::string& certificate_file, const std::string& key_file) {
  return std::make_unique<PlainBeast>(certificate_file, key_file);
}

std::unique_ptr<EchoServer> corked_beast(const TlsContext& tls) {
  return std::make_unique<CorkedBeast>(tls);
}

}  // namespace windlass::bench
