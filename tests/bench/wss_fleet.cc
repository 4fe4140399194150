// Bars of many sessions: what an idle one costs the scheduler in memory, what opening one costs beside its
// TLS handshake, and whether a message costs more when ten thousand are connected.
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
#include "tests/bench/session_echo.h"
#include "tests/bench/session_protocol.h"
#include "tests/bench/wss_sections.h"

namespace windlass::bench {
namespace {

constexpr const char* kServeSessions = "--serve-sessions";
constexpr std::size_t kScattered = 16;  // few beside a hundred connections, so that hardly two share one

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

namespace {

// Sessions that are served by another process, so that neither runs out of descriptors.
class ServedElsewhere final {
 public:
  ServedElsewhere(Identity& identity, std::size_t sessions)
      : process_({"/proc/self/exe", kServeSessions, identity.files.certificate, identity.files.key}) {
    const auto port = static_cast<std::uint16_t>(std::atoi(process_.read_line().c_str()));
    client_ = std::make_unique<LoadClient>(
        loop_, LoadOptions{.port = port,
                           .tls = identity.client_tls.get(),
                           .connections = sessions,
                           .protocol = [](std::size_t number) {
                             return session_protocol({.instance = "w" + std::to_string(number)});
                           }});
  }
  double nanoseconds_per_message(Duration window, std::uint64_t seed) {
    const double before = process_.nanoseconds();
    const auto outcome = client_->run_scattered(kScattered, window, seed);
    return (process_.nanoseconds() - before) / static_cast<double>(outcome.messages);
  }

 private:
  ChildProcess process_;
  EventLoop loop_;
  std::unique_ptr<LoadClient> client_;
};

}  // namespace

void flatness_bar(Run& run, Identity& identity) {
  const Duration window = run.is_smoke() ? milliseconds{10} : milliseconds{500};
  ServedElsewhere few{identity, run.is_smoke() ? 8U : 100U};
  ServedElsewhere many{identity, run.is_smoke() ? 16U : 10'000U};
  Samples ratios{};
  Samples few_ns{};
  Samples many_ns{};
  for (std::size_t round = 0; round < kRounds; ++round) {
    few_ns[round] = few.nanoseconds_per_message(window, round);
    many_ns[round] = many.nanoseconds_per_message(window, round);
    ratios[round] = many_ns[round] / few_ns[round];
  }
  std::printf("message of 100 sessions %.0f ns, of 10 000 %.0f ns\n", median(few_ns), median(many_ns));
  run.bar("wss_message_cost_10000_vs_100_sessions", median(ratios), "<=", 1.3);
}

bool serves_sessions(int argc, char** argv) {
  if (argc != 4 || std::string_view{argv[1]} != kServeSessions) return false;
  const auto tls = TlsContext::server({{argv[2], argv[3]}});
  CHECK(tls.has_value());
  SessionEcho echo{**tls};
  std::fprintf(stderr, "%u\n", static_cast<unsigned>(echo.port()));
  echo.run();
  return true;
}

}  // namespace windlass::bench
