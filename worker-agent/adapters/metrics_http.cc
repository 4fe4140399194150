#include "worker-agent/adapters/metrics_http.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace windlass::agent {
namespace {

constexpr std::size_t kClientsMax = 32;
constexpr std::size_t kRequestBytesMax = 8 * 1024;
constexpr Duration kDeadline = seconds{5};

std::string_view status_text(int status) {
  switch (status) {
    case 200:
      return "200 OK";
    case 404:
      return "404 Not Found";
    case 405:
      return "405 Method Not Allowed";
    case 503:
      return "503 Service Unavailable";
    default:
      return "400 Bad Request";
  }
}

std::string response(const HttpPage& page) {
  std::string text = "HTTP/1.1 ";
  text += status_text(page.status);
  text +=
      "\r\nContent-Type: " + page.content_type + "\r\nContent-Length: " + std::to_string(page.body.size());
  text += "\r\nConnection: close\r\n\r\n" + page.body;
  return text;
}

// "GET /metrics HTTP/1.1" -> a page.
HttpPage answer(std::string_view request, const MetricsHttp::Pages& pages) {
  const std::string_view line = request.substr(0, request.find("\r\n"));
  const std::size_t first = line.find(' ');
  const std::size_t second = line.rfind(' ');
  if (first == std::string_view::npos || second <= first || !line.substr(second + 1).starts_with("HTTP/1.")) {
    return {.status = 400, .body = "This is no HTTP request.\n"};
  }
  if (line.substr(0, first) != "GET") return {.status = 405, .body = "Only GET is answered here.\n"};
  std::string_view path = line.substr(first + 1, second - first - 1);
  path = path.substr(0, path.find('?'));
  return pages(path);
}

}  // namespace

class MetricsHttp::Client final : private ReadinessEvents, private TimerTarget {
 public:
  Client(EventLoop& loop, Socket socket, const Pages& pages)
      : pages_(pages), timer_(loop, *this), readiness_(loop, std::move(socket), *this) {
    timer_.set(loop.now().steady + kDeadline);
    readiness_.wait_readable();
  }
  bool is_over() const { return over_; }

 private:
  void on_timer() override { over_ = true; }

  void on_readable() override {
    std::array<char, 4096> buffer{};
    const IoResult result = read_some(readiness_.fd(), buffer);
    if (result.state == IoState::WouldBlock) return readiness_.wait_readable();
    // After its answer a client has nothing to say but goodbye.
    if (result.state != IoState::Done || !answer_.empty()) {
      over_ = true;
      return;
    }
    request_.append(buffer.data(), result.bytes);
    if (request_.find("\r\n\r\n") == std::string::npos && request_.size() < kRequestBytesMax) {
      return readiness_.wait_readable();
    }
    answer_ = response(answer(request_, pages_));
    on_writable();
  }

  void on_writable() override {
    const IoResult result = write_some(readiness_.fd(), std::string_view{answer_}.substr(written_));
    written_ += result.bytes;
    if (result.state == IoState::Failed || result.state == IoState::Ended) {
      over_ = true;
    } else if (written_ < answer_.size()) {
      readiness_.wait_writable();
    } else {
      finish_writing(readiness_.fd());
      readiness_.wait_readable();  // until the client closes, or its time is over
    }
  }

  const Pages& pages_;
  LoopTimer timer_;
  Readiness readiness_;
  std::string request_;
  std::string answer_;
  std::size_t written_ = 0;
  bool over_ = false;
};

Result<std::unique_ptr<MetricsHttp>> MetricsHttp::listen(EventLoop& loop, const std::string& address,
                                                         std::uint16_t port, Pages pages) {
  const auto where = numeric_address(address, port);
  if (!where) return where.error();
  auto listener = listen_on(*where);
  if (!listener) return listener.error();
  return std::unique_ptr<MetricsHttp>{new MetricsHttp{loop, *std::move(listener), std::move(pages)}};
}

MetricsHttp::MetricsHttp(EventLoop& loop, Socket listener, Pages pages)
    : loop_(loop), pages_(std::move(pages)), port_(local_address(listener.fd()).port()) {
  listener_ = std::make_unique<Readiness>(loop, std::move(listener), static_cast<ReadinessEvents&>(*this));
  listener_->wait_readable();
  loop_.add_turn_end(TurnPhase::Reap, *this);
}

MetricsHttp::~MetricsHttp() {
  loop_.remove_turn_end(TurnPhase::Reap, *this);
}

void MetricsHttp::on_readable() {
  for (Accepted accepted = accept_one(listener_->fd()); accepted.socket.is_open();
       accepted = accept_one(listener_->fd())) {
    if (clients_.size() >= kClientsMax) continue;  // closes it
    clients_.push_back(std::make_unique<Client>(loop_, std::move(accepted.socket), pages_));
  }
  listener_->wait_readable();
}

void MetricsHttp::on_turn_end(TurnPhase) {
  std::erase_if(clients_, [](const auto& client) { return client->is_over(); });
}

}  // namespace windlass::agent
