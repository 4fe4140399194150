// How the scheduler's records look in the store: keys of escaped parts, values of JSON text. Payloads are
// kept as JSON strings, because a command must go out again byte for byte: a worker's journal compares the
// text.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "protocol/base/result.h"
#include "scheduler/core/app_values.h"
#include "scheduler/core/rows.h"
#include "scheduler/core/values.h"

namespace windlass {

// No token was issued later than this.
struct IssuedUntil {
  WallTime at{};
};

// Written when nothing else is, to see whether the store takes anything again.
struct StoreProbe {
  std::uint64_t failures = 0;
};

using AnyRecord = std::variant<CommandRecord, InboxRecord, Revocation, Denial, DrainIntent, AppRecord,
                               AssignmentRecord, ActiveVersion, IssuedUntil, StoreProbe>;

// "command/<tenant>/<id>" and so on. Tenants and ids may hold any printable character, so a slash in one is
// escaped: the rows of two tenants never meet.
std::string command_row(const CommandKey& key);
// `session` is empty where ids are unique without it.
std::string message_row(const WorkerKey& worker, std::string_view id, std::string_view corr,
                        std::string_view session = {});
std::string revocation_row(const WorkerKey& worker);
std::string denial_row(const WorkerKey& worker);
std::string drain_row(const WorkerKey& worker);
std::string app_row(const AppKey& key);
std::string assignment_row(const WorkerKey& worker);
std::string active_row(const TenantId& tenant, std::string_view application_id);
inline constexpr std::string_view kIssuedRow = "meta/issued_until";
inline constexpr std::string_view kProbeRow = "meta/probe";

enum class RowKind {
  Command,
  Message,
  Revocation,
  Denial,
  Drain,
  App,
  Assignment,
  Active,
  Issued,
  Probe,
  Unknown
};
RowKind kind_of(std::string_view row);

Bytes to_row_value(const CommandRecord& record);
Bytes to_row_value(const InboxRecord& record);
Bytes to_row_value(const Revocation& revocation);
Bytes to_row_value(const Denial& denial);
Bytes to_row_value(const DrainIntent& drain);
Bytes to_row_value(const AppRecord& app);
Bytes to_row_value(const AssignmentRecord& assignment);
Bytes to_row_value(const ActiveVersion& active);
Bytes to_row_value(const IssuedUntil& issued);
Bytes to_row_value(const StoreProbe& probe);

class RowReader final {
 public:
  RowReader();
  ~RowReader();
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;

  // E.STORE.INVALID names the row and what is wrong with it.
  Result<AnyRecord> read(const Row& row);

  // Whether the text is one JSON object within the nesting bound of a frame's payload.
  bool is_payload(std::string_view text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace windlass
