// What an operator may ask for, checked before anything is decided: a refusal says which field and why.
#pragma once

#include <cstddef>
#include <string_view>

#include "protocol/base/result.h"
#include "scheduler/core/input.h"
#include "scheduler/core/row_text.h"

namespace windlass {

// E.PROTO.SCHEMA or E.LIMIT.FRAME, with a JSON pointer into the request. An empty id is fine: one will be
// made.
Result<Done> check(const SubmitCommand& request, RowReader& reader);
Result<Done> check(const WorkerKey& worker);
// An id that an operator gives, or the beginning of several.
Result<Done> check_command_id(std::string_view id, std::size_t bytes_max);

}  // namespace windlass
