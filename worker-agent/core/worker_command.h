// What biz.worker.* asks of the language worker of this agent, as values. Parses; does nothing.
//   biz.worker.specialize  {"application_id", "metadata_version", "code_version", "language",
//                           "package": {"digest", "bytes"}, "settings": {"K": "V"}, "runtime": {"id",
//                           "url"}?}
//   biz.worker.reassign    {"runtime": {"id", "url"}}
//   biz.worker.release     {}
//   biz.worker.resume      {}: a worker that its runtime drained is started again
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "protocol/base/result.h"
#include "worker-agent/core/run.h"

namespace windlass::agent {

inline constexpr std::string_view kSpecialize = "biz.worker.specialize";
inline constexpr std::string_view kReassign = "biz.worker.reassign";
inline constexpr std::string_view kRelease = "biz.worker.release";
inline constexpr std::string_view kResume = "biz.worker.resume";

inline constexpr std::size_t kSettingsMax = 4096;
inline constexpr std::size_t kSettingsBytesMax = 512 * 1024;

struct RuntimeTarget {
  std::string id;
  std::string url;
  friend bool operator==(const RuntimeTarget&, const RuntimeTarget&) = default;
};

struct Application {
  std::string application_id;
  std::string metadata_version;
  std::string code_version;
  std::string language;
  std::string package_digest;  // SHA-256 in lower-case hex
  std::uint64_t package_bytes = 0;
  std::vector<std::pair<std::string, std::string>> settings;  // may be secret: never in a log
  friend bool operator==(const Application&, const Application&) = default;
};

struct Specialize {
  Application application;
  std::optional<RuntimeTarget> runtime = std::nullopt;
};
struct Reassign {
  RuntimeTarget runtime;
};
struct Release {};
struct Resume {};

struct WorkerCommand {
  RunId id;
  std::variant<Specialize, Reassign, Release, Resume> what;
};

bool is_worker_command(std::string_view type);

// An error is E.PROTO.SCHEMA and one sentence for whoever sent it.
Result<WorkerCommand> parse_worker_command(std::string_view type, std::string_view payload, RunId id);

// What an agent is to be again after it was restarted, as the text of a file.
struct Assignment {
  std::optional<RuntimeTarget> runtime;
  std::optional<Application> application;
  bool is_drained = false;             // by its runtime
  bool is_drained_for_memory = false;  // and nobody ordered it
  friend bool operator==(const Assignment&, const Assignment&) = default;
};
std::string assignment_text(const Assignment& assignment);
Result<Assignment> parse_assignment(std::string_view text);

}  // namespace windlass::agent
