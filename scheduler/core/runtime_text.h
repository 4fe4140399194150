// The JSON that the scheduler exchanges with agents and runtimes about applications: status and package
// requests read, orders written. What is missing or of another kind reads as nothing, because a status is no
// order: a newer peer may say more.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/core/app_values.h"
#include "scheduler/core/fleet_status.h"
#include "scheduler/core/grants.h"

namespace windlass {

// Of a biz.result: {"ok":true,...} or {"ok":false,"code","reason"}.
struct CommandOutcome {
  bool ok = false;
  std::string reason;
  bool is_of_application = false;  // of a failure: the language worker or the runtime could not take it
};

class RuntimeReader final {
 public:
  RuntimeReader();
  ~RuntimeReader();
  RuntimeReader(const RuntimeReader&) = delete;
  RuntimeReader& operator=(const RuntimeReader&) = delete;

  LanguageWorkerStatus worker_status(std::string_view payload);
  RuntimeStatus runtime_status(std::string_view payload);
  RuntimeSignal signal(std::string_view payload);
  std::optional<PackageRequest> package_request(std::string_view payload);
  CommandOutcome outcome(std::string_view payload);
  // Of an order to a worker or a runtime, which we wrote.
  std::string application_id(std::string_view payload);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

inline constexpr std::string_view kSpecializeType = "biz.worker.specialize";
inline constexpr std::string_view kReleaseType = "biz.worker.release";
inline constexpr std::string_view kResumeType = "biz.worker.resume";
inline constexpr std::string_view kResumePayload = "{}";
inline constexpr std::string_view kSplitType = "biz.runtime.split";
inline constexpr std::string_view kGrantsType = "biz.runtime.grants";
inline constexpr std::string_view kApplicationsType = "biz.runtime.applications";

// Payload of kSpecializeType. The assignment's runtime URL may be empty: the worker stays where it is.
std::string specialize_payload(const AppRecord& app, const AssignmentRecord& assignment);
// Payload of kReleaseType. The worker knows what it holds: the name is for whoever repeats the request.
std::string release_payload(std::string_view application_id);
// Payload of kSplitType. An empty metadata version means the one that serves.
std::string split_payload(std::string_view application_id, std::string_view metadata_version,
                          const Weights& weights);

// Payload of kGrantsType: which instance may serve which application, as of this version of the store.
std::string grants_payload(const GrantUpdate& update, std::uint64_t epoch);
// Payload of kApplicationsType: every application that a runtime is to have.
struct ServedApplication {
  std::string metadata_version;  // that serves; may be empty
  bool is_awaited = true;        // false: none of its workers is ready or on its way
};
std::string applications_payload(const std::map<std::string, ServedApplication>& applications);

// Payload of biz.package.part; the bytes go beside it.
std::string package_part_payload(const PackageRequest& request, std::uint64_t total);
std::string package_refusal_payload(const PackageRequest& request, ErrorCode code, std::string_view error);

// A command's payload as operators may see it: settings of an application as names only.
std::string shown_payload(std::string_view type, std::string_view payload);

// A JSON string with its quotes.
std::string json_quoted(std::string_view text);

}  // namespace windlass
