// Applications, assignments and runtimes as the JSON that operators read. Settings are shown as names only.
#pragma once

#include "protocol/codec/json_writer.h"
#include "scheduler/core/scheduler_core.h"

namespace windlass {

enum class AppDetail { Listed, Whole };
// One application: its versions, who is to run it, and which runtimes serve it. Whole: also which of its
// functions could not be loaded.
void write_app(codec::JsonWriter& json, const TenantId& tenant, const std::string& application_id,
               const SchedulerCore& core, AppDetail detail);
void write_runtime(codec::JsonWriter& json, const Worker& worker);
// `state` is the record's, or what it amounts to now.
void write_assignment_members(codec::JsonWriter& json, const AssignmentRecord& assignment,
                              std::string_view state);
// What the runtime that a language worker is connected to says of it; nothing where none does.
void write_invocations(codec::JsonWriter& json, const Worker& worker, const SchedulerCore& core);
void write_language_worker(codec::JsonWriter& json, const Worker& worker, const SchedulerCore& core);

}  // namespace windlass
