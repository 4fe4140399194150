// Sessions beside what people run today in their place: as fast with everything in memory, and with
// everything on disk.
#include <filesystem>

#include "tests/bench/neighbours.h"
#include "tests/bench/session_echo.h"
#include "tests/bench/session_protocol.h"
#include "tests/bench/wss_sections.h"

namespace windlass::bench {

NeighbourOptions neighbour_options(const Run& run, const Identity& identity) {
  NeighbourOptions options{
      identity.files.certificate, identity.files.key, identity.authority.certificate_file(), {}};
  // The system's temporary folder may be memory, and a disk is what the durable ones are measured on.
  options.folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  if (run.is_smoke()) options.connections = 4;
  return options;
}

void neighbour_bars(Run& run, Identity& identity) {
  const NeighbourOptions options = neighbour_options(run, identity);
  Contest session{
      "session", std::make_unique<SessionEcho>(*identity.server_tls), *identity.client_tls,
      [](std::size_t number) { return session_protocol({.instance = "w" + std::to_string(number)}); }};
  const auto request_reply = nats_request_reply(options);
  const auto publish_ack = jetstream(options, Storage::Memory);
  const auto streams = redis_streams(options, Durability::None);
  const std::vector<Contender*> all = {&session, request_reply.get(), publish_ack.get(), streams.get()};
  const auto results = compete(run, all);
  for (std::size_t i = 1; i < all.size(); ++i) {
    run.bar("wss_session_64x32_vs_" + all[i]->name(), results[0].many.rate_over(results[i].many), ">=", 1);
    run.bar("wss_session_64x1_vs_" + all[i]->name(), results[0].one.rate_over(results[i].one), ">=", 1);
    std::printf("ratio session_cpu_vs_%s 64x32 %.3g 64x1 %.3g\n", all[i]->name().c_str(),
                results[0].many.cheaper_than(results[i].many), results[0].one.cheaper_than(results[i].one));
  }
}

}  // namespace windlass::bench
