// The JSON of what a scheduler orders a runtime to do, and of the answers. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/base/result.h"
#include "protocol/base/time.h"
#include "runtime/adapters/rpc_values.h"
#include "runtime/core/application_gate.h"
#include "runtime/core/runtime_core.h"

namespace windlass::runtime {

inline constexpr std::string_view kInvokeType = "biz.runtime.invoke";
inline constexpr std::string_view kSplitType = "biz.runtime.split";
inline constexpr std::string_view kDrainWorkerType = "biz.runtime.drain_worker";
inline constexpr std::string_view kGrantsType = "biz.runtime.grants";
inline constexpr std::string_view kApplicationsType = "biz.runtime.applications";
inline constexpr std::string_view kStatusType = "biz.runtime.status";
inline constexpr std::string_view kSignalType = "biz.runtime.signal";

struct InvokeCommand {
  std::string application_id;
  std::string function;
  Datum data;
  std::optional<Duration> timeout = {};
  std::string sticky_key = {};    // empty: any worker
  std::string trace_parent = {};  // as given; one that is none begins a new trace
};
struct SplitCommand {
  std::string application_id;
  std::optional<std::string> metadata_version = {};
  std::vector<std::pair<std::string, std::uint32_t>> weights = {};
};
struct DrainWorkerCommand {
  std::string worker;
};

// E.PROTO.SCHEMA with one sentence about the member that is wrong.
Result<InvokeCommand> read_invoke_command(std::string_view payload);
Result<SplitCommand> read_split_command(std::string_view payload);
Result<DrainWorkerCommand> read_drain_worker_command(std::string_view payload);
Result<GrantUpdate> read_grants(std::string_view payload);

// Of kApplicationsType, which is not answered.
Result<AssignedApplications> read_assigned_applications(std::string_view payload);

// Payloads of biz.result.
std::string done_result();
std::string refused_result(const Error& error);
// `logs` are what the function said meanwhile. One that is longer than `bytes_max` is refused in its place.
std::string outcome_result(const Outcome& outcome, const std::vector<std::string>& logs,
                           std::size_t bytes_max);

}  // namespace windlass::runtime
