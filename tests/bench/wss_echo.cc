// Bars of the bare transport: a WebSocket echo over TLS 1.3 on one server thread, ours against Boost.Beast as
// its examples have it and Beast over corked writes.
#include <unordered_map>

#include "protocol/adapters/websocket_server.h"
#include "protocol/base/check.h"
#include "tests/bench/our_echo.h"
#include "tests/bench/wss_sections.h"

namespace windlass::bench {

void echo_bars(Run& run, Identity& identity) {
  const auto protocol = [](std::size_t) { return echo_protocol(512); };
  Contest ours{"echo_ours", std::make_unique<OurEcho>(*identity.server_tls), *identity.client_tls, protocol};
  Contest corked{"echo_corked_beast", corked_beast(*identity.server_tls), *identity.client_tls, protocol};
  Contest plain{"echo_plain_beast", plain_beast(identity.files.certificate, identity.files.key),
                *identity.client_tls, protocol};
  const auto results = compete(run, {&ours, &corked, &plain});
  const auto& [many, one] = results[0];
  std::printf("ratio echo_64x32_cpu corked_beast %.3g plain_beast %.3g\n", many.cheaper_than(results[1].many),
              many.cheaper_than(results[2].many));
  run.bar("wss_echo_64x32_vs_corked_beast", many.rate_over(results[1].many), ">=", 1.5);
  run.bar("wss_echo_64x32_vs_plain_beast", many.rate_over(results[2].many), ">=", 8);
  std::printf("ratio echo_64x1 corked_beast %.3g plain_beast %.3g\n", one.rate_over(results[1].one),
              one.rate_over(results[2].one));
}

}  // namespace windlass::bench
