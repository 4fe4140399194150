// Bars of sessions over WSS, each measured against something else in the same run.
#include "tests/bench/wss_sections.h"

int main(int argc, char** argv) {
  using namespace windlass::bench;
  Run run{argc, argv};
  Identity identity;
  echo_bars(run, identity);
  session_bars(run, identity);
  return run.exit_code();
}
