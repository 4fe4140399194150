// Bars of sessions over WSS, each measured against something else in the same run.
#include "tests/bench/wss_sections.h"

int main(int argc, char** argv) {
  using namespace windlass::bench;
  if (serves(argc, argv) || plays_storm_workers(argc, argv)) return 0;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what was measured is seen, also when a later section fails
  Run run{argc, argv};
  Identity identity;
  for (const Section& section : kSections) {
    if (run.wants(section.name)) section.measure(run, identity);
  }
  return run.exit_code();
}
