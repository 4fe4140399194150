// Which applications are deployed and which worker is to run which: rows of the store. Sends nothing and
// plans nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/base/result.h"
#include "scheduler/core/app_values.h"
#include "scheduler/core/core_options.h"
#include "scheduler/core/dirty_rows.h"
#include "scheduler/core/durable_rows.h"

namespace windlass {

class Apps final {
 public:
  Apps(const CoreOptions& options, DirtyRows& dirty)
      : options_(options), apps_(dirty), assignments_(dirty), active_(dirty) {}
  Apps(const Apps&) = delete;
  Apps& operator=(const Apps&) = delete;

  void restore(AppRecord app);
  void restore(AssignmentRecord assignment, Now now);
  void restore(ActiveVersion active);

  // Applications. Refusals name what is wrong. Settings that are neither given nor removed by `unset` are
  // those of the same code version, or else of the newest. The same package again changes nothing but
  // settings.
  Result<Done> deploy(AppRecord app, const std::set<std::string>& unset, Now now);
  // Whether a worker is ready with its present settings.
  bool is_ready_with(const AppRecord& app) const;
  // How far the present settings of one that is deployed came. A fact.
  void note_rollout(const AppKey& key, std::optional<ProvenSettings> proven, std::string stopped);
  // The digests that may be used by nobody any more.
  Result<std::vector<std::string>> undeploy(const TenantId& tenant, const std::string& application_id,
                                            const std::string& code_version);
  // As decided so far. An empty code version means the newest.
  const AppRecord* find(const TenantId& tenant, const std::string& application_id,
                        const std::string& code_version) const;
  // Weights of code versions that share a metadata version, in place of all that those had before.
  Result<Done> split(const TenantId& tenant, const std::string& application_id, const Weights& weights);
  Weights weights_of(const TenantId& tenant, const std::string& application_id,
                     const std::string& metadata_version) const;
  bool is_package_used(std::string_view digest) const;
  bool may_fetch(const WorkerKey& worker, std::string_view digest) const;

  // When a metadata version was deployed last, in the order of all deployments; 0: it is not.
  std::uint64_t number_of(const TenantId& tenant, const std::string& application_id,
                          const std::string& metadata_version) const;

  // The version that serves. A fact that follows from assignments.
  const ActiveVersion* active(const TenantId& tenant, const std::string& application_id) const;
  void note_active(const TenantId& tenant, const std::string& application_id,
                   std::optional<ActiveVersion> active);

  // Assignments. As decided so far.
  const AssignmentRecord* assignment_of(const WorkerKey& worker) const;
  bool is_undecided(const WorkerKey& worker) const;  // a change of it waits for the store
  std::vector<AssignmentRecord> assignments_of(const TenantId& tenant,
                                               const std::string& application_id) const;
  void propose(const AssignmentRecord& assignment);
  void note(const AssignmentRecord& assignment);
  void erase(const WorkerKey& worker);  // a fact
  void propose_erase(const WorkerKey& worker);

  // Of the next order about an assignment. Grows, also from process to process.
  std::uint64_t next_epoch(WallTime now);

  // Who forgot what it is to run.
  void worker_left(const WorkerKey& worker);
  void worker_forgot(const WorkerKey& worker, bool has_forgotten, Instant now);
  // For so long a lost assignment is shown.
  void forget_later(const WorkerKey& worker, Instant now);
  // Assignments whose worker stayed a placeholder for too long, or was lost long ago; each once.
  struct Due {
    std::vector<AssignmentRecord> forgotten;
    std::vector<AssignmentRecord> stale;  // lost for so long that nobody needs to see it
  };
  Due take_due(Instant now);
  std::optional<Instant> poll_timeout() const { return next_due_; }

  // Storing.
  std::optional<Bytes> begin_store(std::string_view row);
  void end_store(std::string_view row, bool is_committed);
  void drop_unstored();

  // Only what is durable.
  template <class Visit>
  void for_each_app(const Visit& visit) const {
    apps_.for_each_durable([&](const std::string&, const AppRecord& app) { visit(app); });
  }
  template <class Visit>
  void for_each_assignment(const Visit& visit) const {
    assignments_.for_each_durable([&](const std::string&, const AssignmentRecord& each) { visit(each); });
  }
  // As decided so far.
  template <class Visit>
  void for_each_decided(const Visit& visit) const {
    assignments_.for_each([&](const std::string&, const AssignmentRecord& each) { visit(each); });
  }

 private:
  using Clocks = std::map<WorkerKey, Instant>;
  std::vector<WorkerKey> take_due(Clocks& clocks, Instant now);
  Result<Done> merge_settings(AppRecord& app, const std::set<std::string>& unset) const;
  void due_at(Instant at) { next_due_ = next_due_ ? std::min(*next_due_, at) : at; }

  const CoreOptions& options_;
  DurableRows<AppRecord> apps_;
  DurableRows<AssignmentRecord> assignments_;
  DurableRows<ActiveVersion> active_;
  Clocks forgot_;                    // when its worker is told again
  Clocks lost_;                      // when a lost one is forgotten
  std::optional<Instant> next_due_;  // nothing is due before
  std::uint64_t next_number_ = 1;
  std::uint64_t last_epoch_ = 0;
};

// What an application and its versions may be called: they stand in host names and paths.
bool is_application_name(std::string_view text);
bool is_version_name(std::string_view text);

}  // namespace windlass
