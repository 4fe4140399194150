#include "scheduler/core/inbox.h"

#include <algorithm>
#include <utility>

#include "protocol/base/check.h"
#include "scheduler/core/row_text.h"

namespace windlass {
namespace {

constexpr std::size_t kInboxRecordBytes = 256;  // what a record costs beside its texts, about

std::size_t size_of(const InboxRecord& record) {
  const StoredMessage& message = record.message;
  return kInboxRecordBytes + message.id.size() + message.corr.size() + message.type.size() +
         message.payload.size() + record.session.size() +
         (message.attachment ? message.attachment->type.size() + message.attachment->bytes.size() : 0);
}

}  // namespace

void Inbox::restore(InboxRecord record) {
  std::string row = message_row(record.worker, record.message.id, record.message.corr, record.session);
  insert(std::move(record), std::move(row)).is_stored = true;
}

Inbox::Added Inbox::add(const WorkerKey& worker, const std::string& session, const Message& message, Now now,
                        std::vector<InboxRecord>& dropped) {
  std::string row = message_row(worker, message.id(), message.corr(), session);
  StoredMessage stored{std::string{message.id()}, std::string{message.corr()}, std::string{message.type()},
                       std::string{message.payload()}, std::nullopt};
  if (const auto attachment = message.attachment()) {
    stored.attachment = StoredAttachment{std::string{attachment->type}, Bytes{attachment->bytes}};
  }
  //= IDM-2
  if (const auto known = by_row_.find(row); known != by_row_.end()) {
    return known->second->record.message == stored ? Added::Known : Added::Conflict;
  }
  InboxRecord record{worker, next_number_, now.wall, std::move(stored), session};
  dirty_.mark(insert(std::move(record), std::move(row)).row);
  // The newest always stays.
  Tenant& tenant = tenants_[worker.tenant];
  while (tenant.entries.size() > 1 && (tenant.entries.size() > options_.inbox_per_tenant_max ||
                                       tenant.bytes > options_.inbox_bytes_per_tenant_max)) {
    Entry& oldest = tenant.entries.begin()->second;
    dirty_.mark(oldest.row);
    tenant.bytes -= size_of(oldest.record);
    by_row_.erase(oldest.row);
    dropped.push_back(std::move(oldest.record));
    tenant.entries.erase(tenant.entries.begin());
  }
  return Added::Kept;
}

Inbox::Entry& Inbox::insert(InboxRecord record, std::string row) {
  next_number_ = std::max(next_number_, record.number + 1);
  Tenant& tenant = tenants_[record.worker.tenant];
  tenant.bytes += size_of(record);
  const std::uint64_t number = record.number;
  const auto [at, is_new] = tenant.entries.try_emplace(number);
  CHECK(is_new);
  Entry& entry = at->second;
  entry.record = std::move(record);
  entry.row = std::move(row);
  by_row_.emplace(entry.row, &entry);
  return entry;
}

std::optional<Bytes> Inbox::row_value(std::string_view row) const {
  const auto found = by_row_.find(row);
  if (found == by_row_.end()) return std::nullopt;
  return to_row_value(found->second->record);
}

void Inbox::begin_store(std::string_view row) {
  const auto found = by_row_.find(row);
  if (found != by_row_.end()) found->second->is_in_batch = true;
}

void Inbox::end_store(std::string_view row, bool is_committed) {
  const auto found = by_row_.find(row);
  if (found == by_row_.end() || !std::exchange(found->second->is_in_batch, false)) return;
  if (is_committed) found->second->is_stored = true;
}

void Inbox::for_each(const InboxFilter& filter, const std::function<void(const InboxRecord&)>& visit) const {
  // Each tenant's are in order; over all tenants the order is by number too.
  std::vector<const InboxRecord*> found;
  for (const auto& [name, tenant] : tenants_) {
    if (filter.tenant && name != *filter.tenant) continue;
    std::size_t count = 0;
    for (auto at = tenant.entries.upper_bound(filter.after_number); at != tenant.entries.end(); ++at) {
      const Entry& entry = at->second;
      if (!entry.is_stored || (filter.worker && entry.record.worker.instance != *filter.worker)) continue;
      if (++count > filter.count_max) break;
      found.push_back(&entry.record);
    }
  }
  std::ranges::sort(found, {}, [](const InboxRecord* record) { return record->number; });
  if (found.size() > filter.count_max) found.resize(filter.count_max);
  for (const InboxRecord* const record : found) visit(*record);
}

}  // namespace windlass
