// Bars of sessions over the wire: what validation, windows and acks cost beside the bare echo, and what a
// frame waits.
#include <algorithm>

#include "tests/bench/our_echo.h"
#include "tests/bench/session_echo.h"
#include "tests/bench/session_protocol.h"
#include "tests/bench/wss_sections.h"

namespace windlass::bench {
namespace {

std::unique_ptr<LoadProtocol> numbered_session(std::size_t number) {
  return session_protocol({.instance = "w" + std::to_string(number)});
}

double p99(const std::vector<double>& sorted) {
  CHECK(!sorted.empty());
  return sorted[sorted.size() * 99 / 100];
}

double middle(std::vector<double> values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// A guest machine stands still for milliseconds now and then, which is all that the slowest hundredth of a
// long run shows. So: the usual p99 of a tenth of a second, both in turns.
void latency_bar(Run& run, Contest& echo, Contest& session, double rate) {
  const Duration window = run.is_smoke() ? milliseconds{10} : milliseconds{100};
  const std::size_t turns = run.is_smoke() ? 1 : 10;
  Samples ratios{};
  Samples echo_p99{};
  Samples session_p99{};
  for (std::size_t round = 0; round < kRounds; ++round) {
    std::vector<double> echoes;
    std::vector<double> frames;
    for (std::size_t turn = 0; turn < turns; ++turn) {
      echoes.push_back(p99(echo.run_paced(rate, window)));
      frames.push_back(p99(session.run_paced(rate, window)));
    }
    echo_p99[round] = middle(std::move(echoes)) * 1e6;
    session_p99[round] = middle(std::move(frames)) * 1e6;
    ratios[round] = session_p99[round] / echo_p99[round];
  }
  std::printf("latency at %.0f/s p99 echo %.0f us session %.0f us\n", rate, median(echo_p99),
              median(session_p99));
  run.bar("wss_session_p99_vs_echo", median(ratios), "<=", 2);
}

}  // namespace

void session_bars(Run& run, Identity& identity) {
  Contest echo{"echo_ours", std::make_unique<OurEcho>(*identity.server_tls), *identity.client_tls,
               [](std::size_t) { return echo_protocol(512); }};
  Contest session{"session", std::make_unique<SessionEcho>(*identity.server_tls), *identity.client_tls,
                  numbered_session};
  const auto results = compete(run, {&echo, &session});
  run.bar("wss_session_64x32_vs_echo", results[1].many.rate_over(results[0].many), ">=", 0.4);
  run.bar("wss_session_64x1_vs_echo", results[1].one.rate_over(results[0].one), ">=", 0.75);
  latency_bar(run, echo, session, median(results[1].one.rate) / 2);
}

}  // namespace windlass::bench
