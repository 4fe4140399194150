// Bars of many sessions: what an idle one costs the scheduler in memory, and what opening one costs beside
// its TLS handshake.
#include <fcntl.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "protocol/base/check.h"
#include "tests/bench/child_process.h"
#include "tests/bench/scheduler_under_test.h"
#include "tests/bench/session_protocol.h"
#include "tests/bench/wss_sections.h"

namespace windlass::bench {
namespace {

// TLS handshakes and nothing else: a blocking accept on a thread of its own. Connections stay, as sessions
// do.
class BareHandshakes final {
 public:
  explicit BareHandshakes(const TlsContext& tls)
      : listener_(listen_on(*numeric_address("127.0.0.1", 0)).value()), thread_([this, &tls] { run(tls); }) {}
  ~BareHandshakes() {
    stopping_ = true;
    thread_.join();
  }
  std::uint16_t port() const { return local_address(listener_.fd()).port(); }
  double nanoseconds() {
    clockid_t clock{};
    CHECK(::pthread_getcpuclockid(thread_.native_handle(), &clock) == 0);
    timespec spent{};
    CHECK(::clock_gettime(clock, &spent) == 0);
    return static_cast<double>(spent.tv_sec) * 1e9 + static_cast<double>(spent.tv_nsec);
  }

 private:
  void run(const TlsContext& tls) {
    std::vector<std::pair<Socket, SslPointer>> open;
    while (!stopping_) {
      pollfd waiting{listener_.fd(), POLLIN, 0};
      if (::poll(&waiting, 1, 20) != 1) continue;
      Accepted accepted = accept_one(listener_.fd());
      if (!accepted.socket.is_open()) continue;
      const int fd = accepted.socket.fd();
      CHECK(::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK) == 0);
      SslPointer ssl = tls.accept();
      CHECK(SSL_set_fd(ssl.get(), fd) == 1 && SSL_accept(ssl.get()) == 1);
      open.emplace_back(std::move(accepted.socket), std::move(ssl));
    }
  }

  Socket listener_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

class TlsAlone final : public LoadProtocol {
 public:
  void begin(Bytes& /*out*/) override { ready_ = true; }
  bool is_ready() const override { return ready_; }
  void append_messages(std::size_t /*count*/, Bytes& /*out*/) override {}
  std::size_t receive(std::string_view /*bytes*/, Bytes& /*out*/) override { return 0; }

 private:
  bool ready_ = false;
};

using Connections = std::vector<std::unique_ptr<LoadConnection>>;

Connections open_sessions(EventLoop& loop, Identity& identity, std::uint16_t port, std::size_t first,
                          std::size_t count) {
  return open_connections(loop, *identity.client_tls, port, count, [first](std::size_t number) {
    return session_protocol({.path = "/ws/worker",
                             .instance = "w" + std::to_string(first + number),
                             .token = SchedulerUnderTest::kToken});
  });
}

// Memory that is still being given back is not an idle session's.
double settled_bytes(const ChildProcess& process, EventLoop& loop) {
  run_until(loop, seconds{1}, [] { return false; });
  return process.resident_bytes();
}

}  // namespace

void idle_bars(Run& run, Identity& identity) {
  const std::size_t each_round = run.is_smoke() ? 4 : 2000;
  const SchedulerUnderTest scheduler{identity, "memory"};  // nothing of an idle session is on disk
  EventLoop loop;
  std::vector<Connections> open;
  open.push_back(open_sessions(loop, identity, scheduler.port(), 0, 64));  // buffers and tables are warm
  const double before = settled_bytes(scheduler.process(), loop);
  Samples ratios{};
  Samples handshake{};
  Samples session{};
  for (std::size_t round = 0; round < kRounds; ++round) {
    {
      BareHandshakes bare{*identity.server_tls};
      const double start = bare.nanoseconds();
      const Connections closed_soon =
          open_connections(loop, *identity.client_tls, bare.port(), each_round,
                           [](std::size_t) { return std::make_unique<TlsAlone>(); });
      handshake[round] = (bare.nanoseconds() - start) / static_cast<double>(each_round);
    }
    const double start = scheduler.process().nanoseconds();
    open.push_back(open_sessions(loop, identity, scheduler.port(), 1000 + round * each_round, each_round));
    session[round] = (scheduler.process().nanoseconds() - start) / static_cast<double>(each_round);
    ratios[round] = session[round] / handshake[round];
  }
  const double sessions = static_cast<double>(kRounds * each_round);
  const double kib = (settled_bytes(scheduler.process(), loop) - before) / sessions / 1024;
  std::printf("opening a TLS handshake %.0f us a session %.0f us; %.0f sessions open\n",
              median(handshake) / 1000, median(session) / 1000, sessions);
  run.bar("wss_idle_kib_per_session", kib, "<=", 24);
  run.bar("wss_open_session_vs_tls_handshake", median(ratios), "<=", 1.5);
}

}  // namespace windlass::bench
