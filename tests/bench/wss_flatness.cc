// Whether a message costs more when ten thousand sessions are connected than when a hundred are, under the
// same load on a hundred of them.
//
// Messages that go to any of the ten thousand cost more whatever carries them: nothing of a connection that
// is used every quarter of a second is in a cache any more, in the kernel least of all. For that the bare
// transport is measured beside the sessions, which must not add to it.
#include <cstdlib>

#include "protocol/base/check.h"
#include "tests/bench/child_process.h"
#include "tests/bench/our_echo.h"
#include "tests/bench/session_echo.h"
#include "tests/bench/session_protocol.h"
#include "tests/bench/wss_load.h"
#include "tests/bench/wss_sections.h"

namespace windlass::bench {
namespace {

constexpr std::string_view kServe = "--serve";
constexpr std::size_t kInFlight = 16;  // few beside a hundred connections, so that hardly two share one

// A server in another process, so that neither runs out of descriptors, and its clients.
class ServedElsewhere final {
 public:
  ServedElsewhere(Identity& identity, const std::string& kind, std::size_t connections)
      : process_(
            {"/proc/self/exe", std::string{kServe}, kind, identity.files.certificate, identity.files.key}) {
    const auto port = static_cast<std::uint16_t>(std::atoi(process_.read_line().c_str()));
    // Every answer is acknowledged by itself, so that a message is the same work however long the next one
    // takes to come.
    const auto session = [](std::size_t number) {
      return session_protocol({.instance = "w" + std::to_string(number), .acks_at_once = true});
    };
    const auto echo = [](std::size_t) { return echo_protocol(512); };
    LoadOptions options{
        .port = port, .tls = identity.client_tls.get(), .connections = connections, .protocol = {}};
    if (kind == "sessions") {
      options.protocol = session;
    } else {
      options.protocol = echo;
    }
    client_ = std::make_unique<LoadClient>(loop_, options);
  }
  // Of a message to one of the first `busy` connections.
  double nanoseconds(std::size_t busy, Duration window, std::uint64_t seed) {
    const double before = process_.nanoseconds();
    const auto outcome = client_->run_scattered({.in_flight = kInFlight, .busy = busy, .seed = seed}, window);
    return (process_.nanoseconds() - before) / static_cast<double>(outcome.messages);
  }

 private:
  ChildProcess process_;
  EventLoop loop_;
  std::unique_ptr<LoadClient> client_;
};

struct Flatness {
  double same_busy = 0;
  double all_busy = 0;
};

Flatness measure_flatness(const Run& run, Identity& identity, const std::string& kind) {
  const Duration window = run.is_smoke() ? milliseconds{10} : milliseconds{500};
  const std::size_t few_connections = run.is_smoke() ? 8 : 100;
  const std::size_t many_connections = run.is_smoke() ? 16 : 10'000;
  ServedElsewhere few{identity, kind, few_connections};
  ServedElsewhere many{identity, kind, many_connections};
  Samples few_ns{};
  Samples same_ns{};
  Samples all_ns{};
  Samples same{};
  Samples all{};
  for (std::size_t round = 0; round < kRounds; ++round) {
    few_ns[round] = few.nanoseconds(few_connections, window, round);
    same_ns[round] = many.nanoseconds(few_connections, window, round);
    all_ns[round] = many.nanoseconds(many_connections, window, round);
    same[round] = same_ns[round] / few_ns[round];
    all[round] = all_ns[round] / few_ns[round];
  }
  std::printf("message of 100 %s %.0f ns; of 10 000, 100 of them busy %.0f ns, all busy %.0f ns\n",
              kind.c_str(), median(few_ns), median(same_ns), median(all_ns));
  return {median(same), median(all)};
}

}  // namespace

void flatness_bars(Run& run, Identity& identity) {
  const Flatness echo = measure_flatness(run, identity, "echoes");
  const Flatness sessions = measure_flatness(run, identity, "sessions");
  std::printf("ratio cost_10000_vs_100 all_busy sessions %.3g echoes %.3g\n", sessions.all_busy,
              echo.all_busy);
  run.bar("wss_message_cost_10000_vs_100_sessions", sessions.same_busy, "<=", 1.3);
  run.bar("wss_message_cost_all_of_10000_busy_vs_echo", sessions.all_busy / echo.all_busy, "<=", 1);
}

bool serves(int argc, char** argv) {
  if (argc != 5 || std::string_view{argv[1]} != kServe) return false;
  const auto tls = TlsContext::server({{argv[3], argv[4]}});
  CHECK(tls.has_value());
  std::unique_ptr<EchoServer> server;
  if (std::string_view{argv[2]} == "sessions") {
    server = std::make_unique<SessionEcho>(**tls);
  } else {
    server = std::make_unique<OurEcho>(**tls);
  }
  std::fprintf(stderr, "%u\n", static_cast<unsigned>(server->port()));
  server->run();
  return true;
}

}  // namespace windlass::bench
