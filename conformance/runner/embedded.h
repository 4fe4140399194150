// The cases and schemas that this binary was built with: one file to carry around, no folder to find.
#pragma once

#include <map>
#include <string>

namespace windlass::conformance {

// By their path below the repository's root.
const std::map<std::string, std::string>& embedded_files();

}  // namespace windlass::conformance
