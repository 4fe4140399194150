// Applications, assignments and runtimes as the JSON that operators read. Settings are shown as names only.
#pragma once

#include "protocol/codec/json_writer.h"
#include "scheduler/core/scheduler_core.h"

namespace windlass {

// One application: its versions, who is to run it, and which runtimes serve it.
void write_app(codec::JsonWriter& json, const TenantId& tenant, const std::string& application_id,
               const SchedulerCore& core);
void write_runtime(codec::JsonWriter& json, const Worker& worker);
void write_assignment_members(codec::JsonWriter& json, const AssignmentRecord& assignment);
void write_language_worker(codec::JsonWriter& json, const LanguageWorkerStatus& status);

}  // namespace windlass
