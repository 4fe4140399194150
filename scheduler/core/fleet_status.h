// What language workers and runtimes say of themselves from time to time. It is never stored: they say it
// again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/time.h"

namespace windlass {

// biz.worker.status: the language worker that an agent looks after.
struct LanguageWorkerStatus {
  std::string worker_id;
  std::string language;
  std::string runtime;  // id or URL of the one it is connected to
  std::string state;    // placeholder, specializing, ready or failed
  std::string application_id;
  std::string metadata_version;
  std::string code_version;
  std::uint64_t pid = 0;
  std::string last_error;

  bool is_placeholder() const { return state == "placeholder" && application_id.empty(); }
};

struct RuntimeApplication {
  std::string application_id;
  std::string metadata_version;
  std::vector<std::string> code_versions;
  std::vector<std::string> functions;
  std::uint64_t ready = 0;     // workers that take invocations
  std::uint64_t detached = 0;  // that will once their connection is back
  std::uint64_t workers = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t pending = 0;
};

// biz.runtime.status.
struct RuntimeStatus {
  std::string url;   // where agents dial
  std::string http;  // where HTTP-triggered functions answer
  std::string grpc;
  std::string health;
  std::vector<RuntimeApplication> applications;
  std::uint64_t workers = 0;
  std::uint64_t in_flight = 0;
  WallTime at{};
};

// biz.runtime.signal: a runtime wants more workers, fewer, or help.
struct RuntimeSignal {
  std::string kind;
  std::string application_id;
  std::string worker;
  std::string reason;
  bool urgent = false;
  WallTime at{};
};

// biz.package.get of an agent.
struct PackageRequest {
  std::string digest;
  std::uint64_t offset = 0;
};

}  // namespace windlass
