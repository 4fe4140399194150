// What operators are told when something about an application cannot be done.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "protocol/http/http_message.h"
#include "scheduler/core/scheduler_core.h"

namespace windlass {

// As problem_of, with codes that speak of applications.
Problem app_problem_of(const Error& error);

// With the names that resemble it.
Problem unknown_app(const SchedulerCore& core, const TenantId& tenant, const std::string& application_id);
Problem unknown_function(const std::string& application_id, const std::string& function,
                         const std::vector<std::string>& functions);
// Why nobody can be asked to run a function of it.
Problem no_ready_worker(const SchedulerCore& core, const TenantId& tenant, const std::string& application_id);

// "; did you mean 'a' or 'b'?", or nothing.
std::string did_you_mean(std::string_view given, const std::vector<std::string>& names);

}  // namespace windlass
