// A language worker as its folder describes it: worker.config.json in the shape Azure Functions workers
// carry.
//   {"description": {"language", "extensions", "defaultExecutablePath", "defaultWorkerPath"?, "arguments"?,
//                    "workerIndexing"?},
//    "processOptions"?: {"processStartupTimeout", "initializationTimeout", "environmentReloadTimeout"}}
// Members that are not listed, profiles among them, are not used.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/result.h"
#include "protocol/base/time.h"

namespace windlass::agent {

struct WorkerConfig {
  std::string folder;
  std::string language;
  std::string version;  // of the language; empty: it says none
  std::vector<std::string> extensions;
  std::string executable;   // as written: a name to be found, or a path
  std::string worker_path;  // the program's first argument; empty: none
  std::vector<std::string> arguments;
  bool has_indexing = false;
  std::optional<Duration> start_timeout;
  std::optional<Duration> init_timeout;
  std::optional<Duration> reload_timeout;
};

// Errors are one sentence that names the file and what is wrong with it.
Result<WorkerConfig> parse_worker_config(std::string_view text, const std::string& folder);
Result<WorkerConfig> load_worker_config(const std::string& folder);

// Where the program is: a path, from the worker's folder if it is a relative one; a plain name is looked for
// in that folder, beside this program, and then along PATH.
Result<std::string> find_executable(const WorkerConfig& config);

}  // namespace windlass::agent
