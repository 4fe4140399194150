#include "scheduler/shell/admin_app_problems.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "scheduler/shell/admin_json.h"

namespace windlass {
namespace {

constexpr std::size_t kSuggestionsMax = 3;
constexpr std::size_t kListedMax = 12;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// How many letters must change; case does not count.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0U : 1U);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kListedMax; ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kListedMax ? text + ", ..." : text;
}

}  // namespace

std::string did_you_mean(std::string_view given, const std::vector<std::string>& names) {
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const std::string& each : names) {
    const std::size_t steps = distance(given, each);
    if (steps <= std::max<std::size_t>(1, given.size() / 3)) near.emplace_back(steps, each);
  }
  if (near.empty()) return {};
  std::ranges::sort(near);
  std::string text = "; did you mean '" + near.front().second + "'";
  for (std::size_t i = 1; i < near.size() && i < kSuggestionsMax; ++i) text += " or '" + near[i].second + "'";
  return text + "?";
}

Problem app_problem_of(const Error& error) {
  Problem problem = problem_of(error);
  if (error.code == ErrorCode::CmdUnknown) problem.code = "E.APP.UNKNOWN";
  if (error.code == ErrorCode::SessionUnknown) problem.code = "E.APP.NO_WORKERS";
  if (error.code == ErrorCode::ResultDuplicate) problem.code = "E.APP.CONFLICT";
  if (error.code == ErrorCode::PkgInvalid) problem.status = 400;
  return problem;
}

Problem unknown_app(const SchedulerCore& core, const TenantId& tenant, const std::string& application_id) {
  std::set<std::string> names;
  core.apps().for_each_app([&](const AppRecord& each) {
    if (each.key.tenant == tenant) names.insert(each.key.application_id);
  });
  const std::vector<std::string> all{names.begin(), names.end()};
  std::string detail =
      "no application '" + application_id + "' of tenant '" + tenant.value() + "' is deployed";
  const std::string near = did_you_mean(application_id, all);
  if (!near.empty()) {
    detail += near;
  } else if (!all.empty()) {
    detail += "; there are " + listed(all);
  } else {
    detail += ", and no other one either; see windlass deploy";
  }
  return {404, "E.APP.UNKNOWN", detail};
}

Problem unknown_function(const std::string& application_id, const std::string& function,
                         const std::vector<std::string>& functions) {
  const std::string near = did_you_mean(function, functions);
  return {404, "E.FUNCTION.UNKNOWN",
          "application '" + application_id + "' has no function '" + function + "'" + near +
              (near.empty() ? "; it has " : " It has ") + listed(functions)};
}

Problem no_ready_worker(const SchedulerCore& core, const TenantId& tenant,
                        const std::string& application_id) {
  std::map<PlaceState, std::size_t> counts;
  core.apps().for_each_assignment([&](const AssignmentRecord& each) {
    if (each.worker.tenant == tenant && each.application_id == application_id) ++counts[core.state_of(each)];
  });
  std::string why;
  for (const auto& [state, count] : counts) {
    why += (why.empty() ? "" : ", ") + std::to_string(count) + ' ' + std::string{to_string(state)};
  }
  const std::string what = why.empty() ? "none is assigned; see windlass assign " + application_id
                                       : "of those assigned " + why + "; see windlass apps";
  return {409, "E.APP.NO_WORKERS",
          "no runtime has a ready worker of application '" + application_id + "': " + what};
}

}  // namespace windlass
