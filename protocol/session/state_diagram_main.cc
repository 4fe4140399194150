// Prints docs/state-diagram.md from the transition table.
#include <cstdio>

#include "protocol/session/session_state.h"

int main() {
  std::printf(
      "# States of a session\n\nPrinted from `protocol/session/session_state.cc` by "
      "`windlass-state-diagram`.\n\n");
  std::printf("```mermaid\n%s```\n", windlass::state_diagram().c_str());
  return 0;
}
