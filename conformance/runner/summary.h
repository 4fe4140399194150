// The end of a run on a terminal or in a log: a table of areas, then every failure with what a person needs
// to look into it.
#pragma once

#include <string>

#include "conformance/runner/report.h"

namespace windlass::conformance {

std::string summary_text(const RunReport& report);

}  // namespace windlass::conformance
