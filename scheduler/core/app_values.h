// Applications as the scheduler keeps them, and who is to run them. What a package holds is nobody's business
// here: it is a digest.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "scheduler/core/values.h"

namespace windlass {

// One deployed code version of one application.
struct AppKey {
  TenantId tenant;
  std::string application_id;
  std::string code_version;
  friend auto operator<=>(const AppKey&, const AppKey&) = default;
};

using Weights = std::map<std::string, std::uint64_t>;  // by code version

// Settings with which a worker was ready.
struct ProvenSettings {
  std::uint64_t version = 1;
  std::map<std::string, std::string> settings;
  friend bool operator==(const ProvenSettings&, const ProvenSettings&) = default;
};

struct AppRecord {
  AppKey key;
  std::string metadata_version;
  std::string language;
  std::string digest;  // SHA-256 of the package, lower-case hex
  std::uint64_t bytes = 0;
  std::map<std::string, std::string> settings;  // secret: only their names are ever shown
  std::uint64_t settings_version = 1;           // grows when they change, or are to be tried again
  std::uint64_t number = 0;                     // the highest of an application is its newest
  WallTime deployed_at{};
  std::optional<std::uint64_t> weight;  // its share among versions of one metadata version; none: not said
  std::optional<ProvenSettings> proven =
      {};                            // while nobody was ready with the present ones: the last that were
  std::string rollout_stopped = {};  // why the rollout of the current settings stopped; empty: it has not

  // With the settings that a worker is told now.
  AppRecord as_told() const;
  friend bool operator==(const AppRecord&, const AppRecord&) = default;
};

// The metadata version of an application that serves. None before a worker was ready with one.
struct ActiveVersion {
  TenantId tenant;
  std::string application_id;
  std::string metadata_version;
  friend bool operator==(const ActiveVersion&, const ActiveVersion&) = default;
};

enum class AssignmentState : std::uint8_t {
  Pending,    // the worker is to become the application's
  Ready,      // it said that it is
  Failed,     // it said that it could not, or said nothing in time
  Releasing,  // it is to become a placeholder again
  Lost,       // it was away for too long; its place is free
};

std::string_view to_string(AssignmentState state);
std::optional<AssignmentState> assignment_state_from(std::string_view text);

// What one worker was last told to run. At most one per worker.
struct AssignmentRecord {
  WorkerKey worker;
  std::string application_id;
  std::string metadata_version;
  std::string code_version;
  std::string runtime;      // its id; empty: whichever the worker is connected to
  std::string runtime_url;  // likewise
  std::string command;      // the id of the command that brings it about
  AssignmentState state = AssignmentState::Pending;
  std::string reason;  // of Failed and Lost
  WallTime since{};    // of the state
  // Grows with everything the worker is told: what it was told before is void.
  std::uint64_t epoch = 0;
  bool is_owed = false;                // of Lost and Failed: nobody took its place yet
  bool is_refill = false;              // of Pending: the place was there before, and stays if it fails
  std::uint64_t settings_version = 1;  // of the application's settings that it was told

  AppKey app() const { return {worker.tenant, application_id, code_version}; }
  // Whether the worker counts as the application's.
  bool is_active() const { return state == AssignmentState::Pending || state == AssignmentState::Ready; }
  // Whether the application is to have a worker for it, be it this one or another.
  bool holds_place() const { return is_active() || is_open(); }
  // Whether its place waits for somebody to take it.
  bool is_open() const {
    return is_owed && (state == AssignmentState::Lost || state == AssignmentState::Failed);
  }
  WorkerKey runtime_key() const { return {worker.tenant, InstanceId{runtime}}; }
  friend bool operator==(const AssignmentRecord&, const AssignmentRecord&) = default;
};

}  // namespace windlass
