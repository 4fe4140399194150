// Bars of FunctionRpc through the runtime, each measured against something else in the same run.
#include "tests/bench/bare_host.h"
#include "tests/bench/rpc_sections.h"
#include "tests/bench/session_workers.h"

int main(int argc, char** argv) {
  using namespace windlass::bench;
  if (plays_bare_relay(argc, argv) || plays_session_workers(argc, argv) || plays_runtime_alone(argc, argv)) {
    return 0;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what was measured is seen, also when a later section fails
  Run run{argc, argv};
  Identity identity;
  for (const RpcSection& section : kRpcSections) {
    if (run.wants(section.name)) section.measure(run, identity);
  }
  return run.exit_code();
}
