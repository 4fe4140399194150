// Which runtime was told what: an instance may serve an application at a runtime only if the scheduler says
// so there. Each runtime hears everything when its session begins and later what changed. Decides nothing:
// whoever holds the assignments says what is granted.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/core/values.h"

namespace windlass {

struct Grant {
  std::string instance;
  std::string application_id;
  std::string runtime;  // empty: whichever the instance is connected to
};
using GrantTable = std::map<TenantId, std::vector<Grant>>;

// For one runtime. A whole one that does not fit one message goes on in the next, which says so too.
struct GrantUpdate {
  SessionRef session;
  bool is_whole = false;
  bool is_first = true;  // what came of a whole one before, and was cut, is void
  bool has_more = false;
  std::vector<std::pair<std::string, std::string>> granted = {};  // instance and application
  std::vector<std::string> revoked = {};                          // instances
};

class Grants final {
 public:
  static constexpr std::size_t kPerMessageMax = 1'000;

  void open(const TenantId& tenant, const std::string& runtime, SessionRef session);
  void close(SessionRef session);
  // Everything is said again.
  void owe_all();
  bool is_any_owed() const;

  // What every runtime must hear now that this, and nothing else, is granted.
  std::vector<GrantUpdate> update(const GrantTable& granted);

 private:
  struct Told {
    TenantId tenant;
    std::string runtime;
    bool is_owed = true;                                   // the whole
    std::map<std::string, std::string> applications = {};  // by instance
  };
  static void tell(const SessionRef& session, Told& told, std::map<std::string, std::string> wanted,
                   std::vector<GrantUpdate>& updates);

  std::map<SessionRef, Told> runtimes_;
};

}  // namespace windlass
