// Names and small values of the runtime: who and what an invocation is about.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "protocol/base/ids.h"

namespace windlass::runtime {

// One stream of a worker, session or gRPC. The shell's, never used twice.
using ChannelId = StrongId<struct ChannelIdTag, std::uint64_t>;
using WorkerId = StrongId<struct WorkerIdTag, std::string>;
using InvocationId = StrongId<struct InvocationIdTag, std::string>;
using FunctionId = StrongId<struct FunctionIdTag, std::string>;

// What a JobHost is keyed by: triggers, bindings and settings. A change of code alone keeps it.
struct JobHostKey {
  std::string application_id;
  std::string metadata_version;
  friend auto operator<=>(const JobHostKey&, const JobHostKey&) = default;
  std::string text() const { return application_id + ":" + metadata_version; }
};

// What a worker holds.
struct ApplicationVersion {
  JobHostKey job_host;
  std::string code_version;
  friend auto operator<=>(const ApplicationVersion&, const ApplicationVersion&) = default;
  std::string text() const { return job_host.text() + ":" + code_version; }
};

// Workers that hold no application are routed to this JobHost.
inline const JobHostKey& placeholder_job_host() {
  static const JobHostKey key{"windlass.placeholder", "0"};
  return key;
}

}  // namespace windlass::runtime
