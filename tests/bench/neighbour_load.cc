#include "tests/bench/neighbour_load.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include "protocol/adapters/socket_stream.h"
#include "protocol/base/check.h"

namespace windlass::bench {
namespace {

// Longer than any server needs, even one whose disk is busy with somebody else's work.
constexpr Duration kPatience = seconds{60};

Socket connected(std::uint16_t port) {
  auto socket = begin_connect(*numeric_address("127.0.0.1", port));
  CHECK(socket.has_value());
  pollfd waiting{socket->fd(), POLLOUT, 0};
  CHECK(::poll(&waiting, 1, 10'000) == 1 && connect_error(socket->fd()) == 0);
  return std::move(*socket);
}

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

}  // namespace

class NeighbourLoad::Connection final : private ReadinessEvents {
 public:
  Connection(NeighbourLoad& load, SocketStream::Parts parts, std::unique_ptr<Dialogue> dialogue, Part part)
      : load_(load),
        dialogue_(std::move(dialogue)),
        part_(part),
        stream_(load.loop_, std::move(parts), *this) {
    stream_.begin_tls();
    stream_.wait_readable();
  }

  bool is_open() const { return said_hello_ && dialogue_->is_open(); }
  bool is_quiet() const { return in_flight_ == 0; }
  bool is_loaded() const { return part_ == Part::Loaded; }

  void send(std::size_t operations) {
    in_flight_ += operations;
    dialogue_->begin(operations, out_);
    write();
  }

 private:
  void on_readable() override {
    const auto input = stream_.read();
    if (input.state == SocketStream::ReadState::Failed)
      stop_bench("a neighbour failed: " + stream_.failure());
    if (!said_hello_ && stream_.is_ready()) {
      said_hello_ = true;
      dialogue_->hello(out_);
    }
    if (!input.bytes.empty()) take({input.bytes.data(), input.bytes.size()});
    // After take(): a server that gives up says why in its last bytes.
    const bool is_over =
        input.state == SocketStream::ReadState::Ended || input.state == SocketStream::ReadState::Failed;
    if (is_over) stop_bench("a neighbour ended a connection " + stream_.failure());
    write();
    stream_.wait_readable();
  }

  void take(BytesView bytes) {
    const bool was_open = dialogue_->is_open();
    const std::size_t finished = dialogue_->take(bytes, out_);
    if (!was_open && dialogue_->is_open()) load_.loop_.turn_again();
    CHECK(finished <= in_flight_);
    in_flight_ -= finished;
    load_.operations_ += finished;
    if (finished == 0 || !load_.sending_) return;
    in_flight_ += finished;
    dialogue_->begin(finished, out_);
  }

  void on_writable() override { write(); }

  void write() {
    if (!stream_.is_ready()) return;
    const auto output = stream_.write(out_);
    if (output.state == SocketStream::WriteState::Failed) return on_readable();  // which knows why
    out_.erase(0, output.bytes);
    if (output.state == SocketStream::WriteState::Blocked) stream_.wait_writable();
  }

  NeighbourLoad& load_;
  std::unique_ptr<Dialogue> dialogue_;
  Part part_;
  SocketStream stream_;
  Bytes out_;
  std::size_t in_flight_ = 0;
  bool said_hello_ = false;
};

// Turns the loop for a time, or until a condition holds.
class NeighbourLoad::Wait final : private TurnEnd, private TimerTarget {
 public:
  Wait(EventLoop& loop, Duration limit, std::function<bool()> condition)
      : loop_(loop), timer_(loop, *this), condition_(std::move(condition)) {
    loop_.add_turn_end(TurnPhase::Decide, *this);
    timer_.set(loop_.now().steady + limit);
    loop_.turn_again();
    loop_.run();
  }
  ~Wait() override { loop_.remove_turn_end(TurnPhase::Decide, *this); }
  bool holds() const { return holds_; }

 private:
  void on_turn_end(TurnPhase /*phase*/) override {
    holds_ = condition_();
    if (holds_) loop_.stop();
  }
  void on_timer() override { loop_.stop(); }

  EventLoop& loop_;
  LoopTimer timer_;
  std::function<bool()> condition_;
  bool holds_ = false;
};

NeighbourLoad::NeighbourLoad(const NeighbourServer& server, const TlsContext& tls, Greeting greeting)
    : server_(server), tls_(tls), greeting_(greeting) {}

NeighbourLoad::~NeighbourLoad() = default;

void NeighbourLoad::connect(std::unique_ptr<Dialogue> dialogue, Part part) {
  Socket socket = connected(server_.place().port);
  if (greeting_ == Greeting::Line) skip_line(socket.fd());
  SocketStream::Parts parts{std::move(socket), std::make_unique<TlsPump>(tls_.connect("127.0.0.1")), {}};
  connections_.push_back(std::make_unique<Connection>(*this, std::move(parts), std::move(dialogue), part));
}

void NeighbourLoad::open() {
  const Wait opened{loop_, kPatience, [this] {
                      return std::all_of(connections_.begin(), connections_.end(),
                                         [](const auto& each) { return each->is_open(); });
                    }};
  if (!opened.holds()) stop_bench("a neighbour did not open all connections in time");
}

LoadSample NeighbourLoad::run(std::size_t in_flight, Duration window) {
  const std::uint64_t operations_before = operations_;
  const double nanoseconds_before = server_.nanoseconds();
  sending_ = true;
  for (const auto& each : connections_) {
    if (each->is_loaded()) each->send(in_flight);
  }
  const Instant start = loop_.now().steady;
  {
    const Wait full{loop_, window, [] { return false; }};
  }
  const double spent = std::chrono::duration<double>(loop_.now().steady - start).count();
  const auto in_window = static_cast<double>(operations_ - operations_before);
  sending_ = false;
  wait_quiet();
  const auto all = static_cast<double>(operations_ - operations_before);
  return {in_window / spent, (server_.nanoseconds() - nanoseconds_before) / all};
}

void NeighbourLoad::wait_quiet() {
  const Wait quiet{loop_, kPatience, [this] {
                     return std::all_of(connections_.begin(), connections_.end(),
                                        [](const auto& each) { return each->is_quiet(); });
                   }};
  if (!quiet.holds()) stop_bench("a neighbour did not answer everything in time");
}

std::unique_ptr<TlsContext> neighbour_tls(const std::string& authority_file) {
  auto made = TlsContext::client({authority_file, std::nullopt, TlsVersion::Tls13});
  CHECK(made.has_value());
  return std::move(*made);
}

}  // namespace windlass::bench
