// From the command line to who is judged.
#pragma once

#include <string>

#include "conformance/runner/options.h"
#include "conformance/runner/setup.h"
#include "protocol/base/result.h"

namespace windlass::conformance {

// Reads the files and resolves the host. `folder` is for files that live as long as the run.
Result<Setup> make_setup(const Options& options, const WireSchemas& schemas, const std::string& folder);

Result<std::string> read_text_file(const std::string& path);

// A worker that is asked to be something that does not exist must exit with 127, or no case could tell that
// it lacks one.
Result<Done> probe_worker(const Setup& setup, const std::string& folder);

}  // namespace windlass::conformance
