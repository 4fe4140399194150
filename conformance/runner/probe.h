// Prints what a scheduler allows: its accept, and what can be found out by asking.
#pragma once

#include "conformance/runner/setup.h"

namespace windlass::conformance {

// The exit code of the process.
int probe(const Setup& setup, bool as_json);

}  // namespace windlass::conformance
