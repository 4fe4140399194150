// Bars of the transport: a bare WebSocket echo over TLS 1.3 on one server thread, ours against Boost.Beast as
// its examples have it and Beast over corked writes; and the memory of an idle connection.
#include <malloc.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "protocol/adapters/websocket_server.h"
#include "protocol/base/check.h"
#include "tests/bench/bar.h"
#include "tests/bench/wss_beast.h"
#include "tests/bench/wss_load.h"
#include "tests/bench/wss_neighbours.h"
#include "tests/support/certificates.h"

namespace windlass::bench {
namespace {

class EchoEvents final : public ConnectionEvents {
 public:
  void on_opened(ConnectionId id, WebSocketConnection& connection) override {
    open_.emplace(id, &connection);
  }
  void on_message(ConnectionId id, BytesView message, MessageKind kind) override {
    open_.find(id)->second->send(message, kind);
  }
  void on_idle(ConnectionId /*id*/) override {}
  void on_writable(ConnectionId /*id*/) override {}
  void on_closed(ConnectionId id, const CloseFacts& /*facts*/) override { open_.erase(id); }
  std::size_t open() const { return open_.size(); }

 private:
  std::unordered_map<ConnectionId, WebSocketConnection*> open_;
};

class OurEcho final : public EchoServer {
 public:
  explicit OurEcho(const TlsContext& tls) {
    ServerOptions options;
    options.tls = &tls;
    options.rules.paths = {"/v1"};
    auto made = WebSocketServer::listen(loop, options, events);
    CHECK(made.has_value());
    server_ = std::move(*made);
  }
  std::uint16_t port() const override { return server_->port(); }
  void run() override { loop.run(); }
  void stop() override { loop.stop(); }

  EventLoop loop;
  EchoEvents events;

 private:
  std::unique_ptr<WebSocketServer> server_;
};

struct Sample {
  double rate = 0;         // echoes per second, as the client saw them
  double nanoseconds = 0;  // of the server's thread for each
};

// A server on its thread and the connections that load it.
class Contest final {
 public:
  Contest(std::unique_ptr<EchoServer> server, const TlsContext& tls)
      : server_(std::move(server)), thread_([this] { server_->run(); }) {
    many_ = std::make_unique<LoadClient>(loop_, LoadOptions{server_->port(), &tls, 64, 32, 512});
    one_ = std::make_unique<LoadClient>(loop_, LoadOptions{server_->port(), &tls, 64, 1, 512});
  }
  ~Contest() {
    server_->stop();
    thread_.join();
  }
  Sample many(Duration window) { return run(*many_, window); }
  Sample one(Duration window) { return run(*one_, window); }

 private:
  Sample run(LoadClient& client, Duration window) {
    const double before = server_nanoseconds();
    const LoadClient::Outcome outcome = client.run(window);
    return {outcome.per_second, (server_nanoseconds() - before) / static_cast<double>(outcome.messages)};
  }
  double server_nanoseconds() {
    clockid_t clock{};
    CHECK(::pthread_getcpuclockid(thread_.native_handle(), &clock) == 0);
    timespec spent{};
    CHECK(::clock_gettime(clock, &spent) == 0);
    return static_cast<double>(spent.tv_sec) * 1e9 + static_cast<double>(spent.tv_nsec);
  }

  std::unique_ptr<EchoServer> server_;
  std::thread thread_;
  EventLoop loop_;
  std::unique_ptr<LoadClient> many_;
  std::unique_ptr<LoadClient> one_;
};

constexpr std::size_t kServers = 3;
constexpr const char* kNames[kServers] = {"ours", "corked_beast", "plain_beast"};

// Bars compare what a message costs the server's thread, system calls included: the rate that a client sees
// depends on who else uses the machine.
struct Shape {
  Samples rate{};
  Samples nanoseconds{};

  void add(std::size_t round, const Sample& sample) {
    rate[round] = sample.rate;
    nanoseconds[round] = sample.nanoseconds;
  }
  double speed_over(const Shape& other) const {
    Samples ratios{};
    for (std::size_t i = 0; i < kRounds; ++i) ratios[i] = other.nanoseconds[i] / nanoseconds[i];
    return median(ratios);
  }
};

void echo_bars(Run& run, testing::TestAuthority& authority, const testing::IssuedFiles& files) {
  const auto server_tls = TlsContext::server({{files.certificate, files.key}});
  const auto client_tls = TlsContext::client({authority.certificate_file()});
  CHECK(server_tls.has_value() && client_tls.has_value());
  Contest ours{std::make_unique<OurEcho>(**server_tls), **client_tls};
  Contest corked{corked_beast(**server_tls), **client_tls};
  Contest plain{plain_beast(files.certificate, files.key), **client_tls};
  Contest* const contests[kServers] = {&ours, &corked, &plain};

  const Duration window = run.is_smoke() ? milliseconds{10} : milliseconds{400};
  std::array<Shape, kServers> many;
  std::array<Shape, kServers> one;
  for (Contest* const each : contests) static_cast<void>(each->many(window / 4));
  for (std::size_t round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < kServers; ++i) many[i].add(round, contests[i]->many(window));
    for (std::size_t i = 0; i < kServers; ++i) one[i].add(round, contests[i]->one(window));
  }
  for (std::size_t i = 0; i < kServers; ++i) {
    std::printf("echo %s 64x32 %.0f ns %.0f/s 64x1 %.0f ns %.0f/s\n", kNames[i], median(many[i].nanoseconds),
                median(many[i].rate), median(one[i].nanoseconds), median(one[i].rate));
  }
  run.bar("wss_echo_64x32_vs_corked_beast", many[0].speed_over(many[1]), ">=", 1.5);
  run.bar("wss_echo_64x32_vs_plain_beast", many[0].speed_over(many[2]), ">=", 8);
  std::printf("ratio wss_echo_64x1_vs_corked_beast %.3g\n", one[0].speed_over(one[1]));
  run.bar("wss_echo_64x1_vs_plain_beast", one[0].speed_over(one[2]), ">=", 1.1);
}

double resident_bytes() {
  std::ifstream statm{"/proc/self/statm"};
  double pages = 0;
  statm >> pages >> pages;
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

// Clients live in another process, so that this one's memory is the server's alone.
pid_t spawn_clients(const char* program, std::uint16_t port, std::size_t count,
                    const std::string& authority) {
  std::string texts[] = {program, "--idle-clients", std::to_string(port), std::to_string(count), authority};
  char* arguments[] = {texts[0].data(), texts[1].data(), texts[2].data(),
                       texts[3].data(), texts[4].data(), nullptr};
  pid_t child = 0;
  CHECK(::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ) == 0);
  return child;
}

int idle_clients(char** arguments) {
  const auto tls = TlsContext::client({arguments[4]});
  CHECK(tls.has_value());
  EventLoop loop;
  LoadClient client{loop,
                    {static_cast<std::uint16_t>(std::atoi(arguments[2])), tls->get(),
                     static_cast<std::size_t>(std::atoi(arguments[3])), 1, 512}};
  static_cast<void>(client.run(milliseconds{1}));  // each has carried a message
  client.hold();
  return 0;
}

// Runs the loop until `count` connections are open and have been quiet for a while.
class WaitQuiet final : private TurnEnd, private TimerTarget {
 public:
  WaitQuiet(OurEcho& echo, std::size_t count) : echo_(echo), count_(count), timer_(echo.loop, *this) {
    echo_.loop.add_turn_end(TurnPhase::Decide, *this);
    echo_.run();
    echo_.loop.remove_turn_end(TurnPhase::Decide, *this);
  }

 private:
  void on_turn_end(TurnPhase /*phase*/) override {
    if (echo_.events.open() >= count_) timer_.set(echo_.loop.now().steady + milliseconds{500});
  }
  void on_timer() override { echo_.stop(); }

  OurEcho& echo_;
  std::size_t count_;
  LoopTimer timer_;
};

void idle_bar(Run& run, const char* program, testing::TestAuthority& authority,
              const testing::IssuedFiles& files) {
  const auto tls = TlsContext::server({{files.certificate, files.key}});
  CHECK(tls.has_value());
  OurEcho echo{**tls};
  const std::size_t count = run.is_smoke() ? 20 : 1000;
  const pid_t warm = spawn_clients(program, echo.port(), 20, authority.certificate_file());
  { const WaitQuiet quiet{echo, 20}; }
  const double before = resident_bytes();
  const auto heap_before = static_cast<double>(::mallinfo2().uordblks);
  const pid_t child = spawn_clients(program, echo.port(), count, authority.certificate_file());
  { const WaitQuiet quiet{echo, 20 + count}; }
  const double resident = (resident_bytes() - before) / static_cast<double>(count) / 1024;
  const double heap =
      (static_cast<double>(::mallinfo2().uordblks) - heap_before) / static_cast<double>(count) / 1024;
  for (const pid_t each : {warm, child}) {
    ::kill(each, SIGKILL);
    ::waitpid(each, nullptr, 0);
  }
  std::printf("memory idle_tls_connection resident %.1f KiB heap %.1f KiB\n", resident, heap);
  run.bar("wss_idle_kib_per_connection", resident, "<=", 16);
}

}  // namespace
}  // namespace windlass::bench

int main(int argc, char** argv) {
  using namespace windlass::bench;
  if (argc == 5 && std::string_view{argv[1]} == "--idle-clients") return idle_clients(argv);
  Run run{argc, argv};
  windlass::testing::TestAuthority authority;
  const auto files = authority.issue("server");
  idle_bar(run, argv[0], authority, files);
  echo_bars(run, authority, files);
  static_cast<void>(neighbours_table(run, authority, files));
  static_cast<void>(durable_neighbours_table(run, authority, files));
  return run.exit_code();
}
