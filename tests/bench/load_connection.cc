#include "tests/bench/load_connection.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "protocol/base/check.h"

namespace windlass::bench {
namespace {

constexpr std::size_t kOpenedAtOnce = 32;

// The server says nothing after the line before it has heard the client's side of TLS, so no byte of TLS is
// read here.
void skip_line(int fd) {
  std::string line;
  while (!line.ends_with('\n')) {
    pollfd waiting{fd, POLLIN, 0};
    CHECK(::poll(&waiting, 1, 10'000) == 1);
    std::array<char, 4096> part{};
    const IoResult got = read_some(fd, part);
    CHECK(got.state == IoState::Done || got.state == IoState::WouldBlock);
    line.append(part.data(), got.bytes);
  }
}

SocketStream::Parts connected(const TlsContext& tls, std::uint16_t port, Greeting greeting) {
  auto socket = begin_connect(*numeric_address("127.0.0.1", port));
  CHECK(socket.has_value());
  pollfd waiting{socket->fd(), POLLOUT, 0};
  CHECK(::poll(&waiting, 1, 10'000) == 1 && connect_error(socket->fd()) == 0);
  if (greeting == Greeting::Line) skip_line(socket->fd());
  return {std::move(*socket), std::make_unique<TlsPump>(tls.connect("127.0.0.1")), {}};
}

class Stopper final : private TurnEnd, private TimerTarget {
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

}  // namespace

void stop_bench(const std::string& why) {
  std::fprintf(stderr, "bench: %s\n", why.c_str());
  std::fflush(stdout);
  std::_Exit(1);
}

LoadConnection::LoadConnection(EventLoop& loop, const TlsContext& tls, std::uint16_t port,
                               std::unique_ptr<LoadProtocol> protocol, Greeting greeting)
    : loop_(loop), protocol_(std::move(protocol)), stream_(loop, connected(tls, port, greeting), *this) {
  stream_.begin_tls();
  stream_.wait_readable();
}

void LoadConnection::send(std::size_t messages) {
  in_flight_ += messages;
  protocol_->append_messages(messages, out_);
  write();
}

void LoadConnection::settle() {
  protocol_->settle(out_);
  write();
}

void LoadConnection::on_readable() {
  const auto input = stream_.read();
  if (!begun_ && stream_.is_ready()) {
    begun_ = true;
    protocol_->begin(out_);
  }
  const bool was_ready = is_ready();
  const std::size_t answers = protocol_->receive({input.bytes.data(), input.bytes.size()}, out_);
  CHECK(answers <= in_flight_);
  // Only now: a server that gives up says why in its last bytes.
  if (input.state == SocketStream::ReadState::Ended || input.state == SocketStream::ReadState::Failed) {
    stop_bench("a server ended a connection " + stream_.failure());
  }
  in_flight_ -= answers;
  count_ += answers;
  if (answers > 0 && on_answers) on_answers(*this, answers);
  write();
  if (is_ready() && !was_ready) loop_.turn_again();
  stream_.wait_readable();
}

void LoadConnection::write() {
  if (out_.empty() && stream_.unsent_bytes() == 0) return;
  const auto output = stream_.write(out_);
  if (output.state == SocketStream::WriteState::Failed) return on_readable();  // which knows why
  out_.erase(0, output.bytes);
  if (output.state == SocketStream::WriteState::Blocked) stream_.wait_writable();
}

void run_until(EventLoop& loop, std::optional<Duration> window, std::function<bool()> condition) {
  const Stopper stopper{loop, window, std::move(condition)};
}

std::vector<std::unique_ptr<LoadConnection>> open_connections(
    EventLoop& loop, const TlsContext& tls, std::uint16_t port, std::size_t count,
    const std::function<std::unique_ptr<LoadProtocol>(std::size_t)>& protocol) {
  std::vector<std::unique_ptr<LoadConnection>> all;
  while (all.size() < count) {
    const std::size_t first = all.size();
    for (std::size_t i = first; i < std::min(count, first + kOpenedAtOnce); ++i) {
      all.push_back(std::make_unique<LoadConnection>(loop, tls, port, protocol(i)));
    }
    run_until(loop, std::nullopt, [&all, first] {
      return std::all_of(all.begin() + static_cast<std::ptrdiff_t>(first), all.end(),
                         [](const auto& each) { return each->is_ready(); });
    });
  }
  return all;
}

}  // namespace windlass::bench
