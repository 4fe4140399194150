#include "tests/bench/wss_load.h"

#include <poll.h>

#include <algorithm>
#include <string_view>

#include "protocol/adapters/socket_stream.h"
#include "protocol/base/check.h"
#include "protocol/websocket/upgrade.h"
#include "protocol/websocket/writer.h"

namespace windlass::bench {
namespace {

Bytes upgrade() {
  auto request = websocket::upgrade_request({"127.0.0.1", "/v1"}, websocket::UpgradeNonce{});
  CHECK(request.has_value());
  return *request;
}

}  // namespace

class LoadClient::Connection final : private ReadinessEvents {
 public:
  Connection(LoadClient& client, SocketStream::Parts parts)
      : client_(client), stream_(client.loop_, std::move(parts), *this) {
    stream_.begin_tls();
    stream_.wait_readable();
  }

  bool is_open() const { return open_; }
  bool is_quiet() const { return in_flight_ == 0; }
  std::uint64_t take_count() { return std::exchange(count_, 0); }

  void send(std::size_t messages) {
    in_flight_ += messages;
    out_.append(client_.frames_, 0, messages * client_.frame_bytes_);
    write();
  }
  bool sending = false;

 private:
  void on_readable() override {
    const auto input = stream_.read();
    CHECK(input.state == SocketStream::ReadState::Drained || input.state == SocketStream::ReadState::More);
    if (!requested_ && stream_.is_ready()) {
      requested_ = true;
      out_ = upgrade();
      write();
    }
    std::string_view bytes{input.bytes.data(), input.bytes.size()};
    if (!open_) {
      head_ += bytes;
      const std::size_t end = head_.find("\r\n\r\n");
      if (end != Bytes::npos) {
        CHECK(head_.starts_with("HTTP/1.1 101") && end + 4 == head_.size());
        open_ = true;
        client_.loop_.turn_again();
      }
    } else {
      received_ += bytes.size();
      const std::size_t echoes = received_ / client_.echo_bytes_;
      received_ %= client_.echo_bytes_;
      CHECK(echoes <= in_flight_);
      in_flight_ -= echoes;
      count_ += echoes;
      if (sending && echoes > 0) send(echoes);
    }
    stream_.wait_readable();
  }

  void on_writable() override { write(); }

  void write() {
    const auto output = stream_.write(out_);
    CHECK(output.state != SocketStream::WriteState::Failed);
    out_.erase(0, output.bytes);
    if (output.state == SocketStream::WriteState::Blocked) stream_.wait_writable();
  }

  LoadClient& client_;
  SocketStream stream_;
  Bytes out_;
  Bytes head_;
  std::size_t received_ = 0;
  std::size_t in_flight_ = 0;
  std::uint64_t count_ = 0;
  bool requested_ = false;
  bool open_ = false;
};

// Ends a run of the loop when its time is over or its condition holds.
class LoadClient::Stopper final : private TurnEnd, private TimerTarget {
 public:
  Stopper(EventLoop& loop, std::optional<Duration> window, std::function<bool()> condition)
      : loop_(loop), timer_(loop, *this), condition_(std::move(condition)) {
    loop_.add_turn_end(TurnPhase::Decide, *this);
    if (window) timer_.set(loop_.now().steady + *window);
    loop_.turn_again();
    loop_.run();
  }
  ~Stopper() override { loop_.remove_turn_end(TurnPhase::Decide, *this); }

 private:
  void on_turn_end(TurnPhase /*phase*/) override {
    if (condition_()) loop_.stop();
  }
  void on_timer() override { loop_.stop(); }

  EventLoop& loop_;
  LoopTimer timer_;
  std::function<bool()> condition_;
};

LoadClient::LoadClient(EventLoop& loop, const LoadOptions& options) : loop_(loop) {
  websocket::append_text(Bytes(options.message_bytes, 'x'), websocket::MaskKey::from(0x12345678), frames_);
  frame_bytes_ = frames_.size();
  echo_bytes_ = frame_bytes_ - 4;
  const Bytes one = frames_;
  for (std::size_t i = 1; i < options.in_flight; ++i) frames_ += one;
  const auto address = numeric_address("127.0.0.1", options.port);
  // A few at a time, so that no accept queue is longer than its owner expects.
  while (connections_.size() < options.connections) {
    const std::size_t more = std::min<std::size_t>(32, options.connections - connections_.size());
    for (std::size_t i = 0; i < more; ++i) {
      auto socket = begin_connect(*address);
      CHECK(socket.has_value());
      pollfd waiting{socket->fd(), POLLOUT, 0};
      CHECK(::poll(&waiting, 1, 10'000) == 1 && connect_error(socket->fd()) == 0);
      auto pump = std::make_unique<TlsPump>(options.tls->connect("127.0.0.1"));
      connections_.push_back(
          std::make_unique<Connection>(*this, SocketStream::Parts{std::move(*socket), std::move(pump), {}}));
    }
    const Stopper opened{loop_, std::nullopt, [this] {
                           return std::all_of(
                               connections_.end() - std::min<std::ptrdiff_t>(32, std::ssize(connections_)),
                               connections_.end(), [](const auto& each) { return each->is_open(); });
                         }};
  }
}

LoadClient::~LoadClient() = default;

LoadClient::Outcome LoadClient::run(Duration window) {
  const auto seconds_of = [](Duration duration) { return std::chrono::duration<double>(duration).count(); };
  for (const auto& each : connections_) {
    each->sending = true;
    static_cast<void>(each->take_count());
    each->send(frames_.size() / frame_bytes_);
  }
  const Instant start = loop_.now().steady;
  {
    const Stopper full{loop_, window, [] { return false; }};
  }
  const double spent = seconds_of(loop_.now().steady - start);
  std::uint64_t count = 0;
  for (const auto& each : connections_) {
    each->sending = false;
    count += each->take_count();
  }
  const Stopper quiet{loop_, std::nullopt, [this] {
                        return std::all_of(connections_.begin(), connections_.end(),
                                           [](const auto& each) { return each->is_quiet(); });
                      }};
  std::uint64_t rest = 0;
  for (const auto& each : connections_) rest += each->take_count();
  return {static_cast<double>(count) / spent, count + rest};
}

void LoadClient::hold() {
  const Stopper forever{loop_, std::nullopt, [] { return false; }};
}

}  // namespace windlass::bench
