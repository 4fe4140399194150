#include "tests/bench/wss_load.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <unordered_map>

#include "protocol/base/check.h"
#include "protocol/base/random.h"
#include "protocol/websocket/upgrade.h"
#include "protocol/websocket/writer.h"

namespace windlass::bench {
namespace {

class EchoProtocol final : public LoadProtocol {
 public:
  explicit EchoProtocol(std::size_t message_bytes) {
    websocket::append_text(Bytes(message_bytes, 'x'), websocket::MaskKey::from(0x12345678), frame_);
  }
  void begin(Bytes& out) override {
    out += *websocket::upgrade_request({"127.0.0.1", "/v1"}, websocket::UpgradeNonce{});
  }
  bool is_ready() const override { return open_; }
  void append_messages(std::size_t count, Bytes& out) override {
    for (std::size_t i = 0; i < count; ++i) out += frame_;
  }
  std::size_t receive(std::string_view bytes, Bytes& /*out*/) override {
    if (!open_) {
      head_ += bytes;
      const std::size_t end = head_.find("\r\n\r\n");
      if (end == Bytes::npos) return 0;
      CHECK(head_.starts_with("HTTP/1.1 101") && end + 4 == head_.size());
      open_ = true;
      return 0;
    }
    const std::size_t echo_bytes = frame_.size() - 4;  // without the mask
    received_ += bytes.size();
    const std::size_t echoes = received_ / echo_bytes;
    received_ %= echo_bytes;
    return echoes;
  }

 private:
  Bytes frame_;
  Bytes head_;
  std::size_t received_ = 0;
  bool open_ = false;
};

double seconds_of(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

std::unique_ptr<LoadProtocol> echo_protocol(std::size_t message_bytes) {
  return std::make_unique<EchoProtocol>(message_bytes);
}

LoadClient::LoadClient(EventLoop& loop, const LoadOptions& options)
    : loop_(loop),
      connections_(
          open_connections(loop, *options.tls, options.port, options.connections, options.protocol)) {}

LoadClient::Outcome LoadClient::run(std::size_t in_flight, Duration window) {
  for (const auto& each : connections_) {
    each->on_answers = [](LoadConnection& connection, std::size_t answers) { connection.send(answers); };
    each->send(in_flight);
  }
  return measure(window);
}

LoadClient::Outcome LoadClient::run_scattered(const Scatter& scatter, Duration window) {
  Random random{scatter.seed};
  const auto send_one = [&] { connections_[random.below(scatter.busy)]->send(1); };
  for (const auto& each : connections_) {
    each->on_answers = [&](LoadConnection&, std::size_t answers) {
      while (answers-- > 0) send_one();
    };
  }
  for (std::size_t i = 0; i < scatter.in_flight; ++i) send_one();
  return measure(window);
}

LoadClient::Outcome LoadClient::measure(Duration window) {
  const Instant start = loop_.now().steady;
  run_until(loop_, window, [] { return false; });
  const double spent = seconds_of(loop_.now().steady - start);
  std::uint64_t count = 0;
  for (const auto& each : connections_) {
    each->on_answers = nullptr;
    count += each->take_count();
  }
  wait_quiet();
  std::uint64_t rest = 0;
  for (const auto& each : connections_) rest += each->take_count();
  return {static_cast<double>(count) / spent, count + rest};
}

std::vector<double> LoadClient::run_paced(double per_second, Duration window) {
  std::vector<double> latencies;
  std::unordered_map<LoadConnection*, std::deque<double>> due;
  for (const auto& each : connections_) {
    each->on_answers = [&](LoadConnection& connection, std::size_t answers) {
      const double now = seconds_now();
      auto& waiting = due.at(&connection);
      while (answers-- > 0) {
        latencies.push_back(now - waiting.front());
        waiting.pop_front();
      }
    };
    due[each.get()];
  }
  const double start = seconds_now();
  const auto total = static_cast<std::uint64_t>(seconds_of(window) * per_second);
  std::uint64_t sent = 0;
  run_until(loop_, std::nullopt, [&] {
    const auto wanted = static_cast<std::uint64_t>((seconds_now() - start) * per_second);
    for (; sent < std::min(wanted, total); ++sent) {
      LoadConnection& next = *connections_[sent % connections_.size()];
      due.at(&next).push_back(start + static_cast<double>(sent) / per_second);
      next.send(1);
    }
    loop_.turn_again();  // never sleeps: a timer would be the measure otherwise
    return sent == total;
  });
  wait_quiet();
  for (const auto& each : connections_) {
    each->on_answers = nullptr;
    static_cast<void>(each->take_count());
  }
  std::sort(latencies.begin(), latencies.end());
  return latencies;
}

void LoadClient::wait_quiet() {
  run_until(loop_, std::nullopt, [this] {
    return std::all_of(connections_.begin(), connections_.end(),
                       [](const auto& each) { return each->in_flight() == 0; });
  });
  for (const auto& each : connections_) each->settle();
}

void LoadClient::hold() {
  run_until(loop_, std::nullopt, [] { return false; });
}

}  // namespace windlass::bench
