// An application: the shared objects of one folder, opened, and the functions they registered. Code that was
// loaded stays until the process ends, so a process holds one application at most.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "protocol/base/result.h"
#include "worker-agent/native/include/windlass/function.h"

namespace windlass::native {

struct LoadedFunction {
  LoadedFunction(Function registered, std::string file);

  Function function;
  std::string library;       // file name of the shared object
  std::string trigger;       // name of the trigger's binding
  std::string log_category;  // of what it logs
  bool http = false;
  std::atomic<std::uint32_t> short_runs = 0;  // in a row
};

class Application final {
 public:
  // Opens what `folder` has: the "libraries" of its windlass.json, else every *.so beside it, in the order of
  // their names. The error names the file and says what to do; whatever was opened until then stays mapped.
  static Result<std::unique_ptr<Application>> load(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const std::vector<std::unique_ptr<LoadedFunction>>& functions() const { return functions_; }
  LoadedFunction* find(
      std::string_view name) const;  // null: there is none; the letters' case does not matter

 private:
  class Collector;
  Application() = default;
  Result<bool> open(const std::filesystem::path& library);

  std::filesystem::path folder_;
  std::vector<std::unique_ptr<LoadedFunction>> functions_;
  std::unordered_map<std::string, LoadedFunction*> by_name_;  // in lower case
};

}  // namespace windlass::native
