// Workers, commands and messages as the JSON that operators read. docs/openapi.json has the same names.
#pragma once

#include "protocol/codec/json_writer.h"
#include "protocol/http/http_message.h"
#include "scheduler/core/scheduler_core.h"

namespace windlass {

// Everything a table needs, or everything there is.
enum class Detail : std::uint8_t { Short, Full };

void write_worker(codec::JsonWriter& json, const Worker& worker, const SchedulerCore& core, Detail detail);
void write_command(codec::JsonWriter& json, const CommandView& command, Detail detail);
void write_message(codec::JsonWriter& json, const InboxRecord& record);
void write_denial(codec::JsonWriter& json, const Denial& denial);

// 200 unless said otherwise.
template <class Members>
HttpResponse json_response(const Members& members, std::uint16_t status = 200) {
  HttpResponse response{status, "application/json", {}, {}};
  codec::JsonWriter json{response.body};
  json.begin();
  members(json);
  json.end();
  json.finish();
  response.body += '\n';
  return response;
}

// What an operator is told when the core said no.
Problem problem_of(const Error& error);

}  // namespace windlass
