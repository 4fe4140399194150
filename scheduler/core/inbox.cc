#include "scheduler/core/inbox.h"

#include <algorithm>
#include <array>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/base/mutant.h"
#include "protocol/crypto/digest.h"
#include "protocol/crypto/text_encoding.h"
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

std::string digest_of(const StoredMessage& message) {
  const std::string_view type = message.attachment ? std::string_view{message.attachment->type} : "";
  const std::string_view bytes = message.attachment ? std::string_view{message.attachment->bytes} : "";
  const std::array<BytesView, 5> parts{message.type, message.payload, message.attachment ? "1" : "0", type,
                                       bytes};
  return hex_encode(view_of(sha256_parts(parts)));
}

}  // namespace

void Inbox::restore(InboxRecord record, Now now) {
  std::string row = message_row(record.worker, record.message.id, record.message.corr, record.session);
  const Duration age = std::max<Duration>(now.wall - record.received_at, Duration{0});
  insert(std::move(record), std::move(row), now.steady - age).is_stored = true;
}

Inbox::Added Inbox::add(const WorkerKey& worker, const std::string& session, const Message& message, Now now,
                        std::vector<InboxRecord>& dropped) {
  std::string row = message_row(worker, message.id(), message.corr(), session);
  StoredMessage stored{std::string{message.id()}, std::string{message.corr()}, std::string{message.type()},
                       std::string{message.payload()}, std::nullopt};
  if (const auto attachment = message.attachment()) {
    stored.attachment = StoredAttachment{std::string{attachment->type}, Bytes{attachment->bytes}};
  }
  //= IDM-2, IDM-3
  if (const auto known = by_row_.find(row); known != by_row_.end()) {
    const InboxRecord& record = known->second->record;
    const bool is_same =
        record.digest.empty() ? record.message == stored : record.digest == digest_of(stored);
    return is_same ? Added::Known : Added::Conflict;
  }
  InboxRecord record{worker, next_number_, now.wall, std::move(stored), session};
  dirty_.mark(insert(std::move(record), std::move(row), now.steady).row);
  make_room(tenants_[worker.tenant], now.steady, dropped);
  return Added::Kept;
}

// The newest always stays. Of the others the name stays, while a worker may send it again.
void Inbox::make_room(Tenant& tenant, Instant now, std::vector<InboxRecord>& dropped) {
  while (tenant.entries.size() > 1 && (tenant.entries.size() > options_.inbox_per_tenant_max ||
                                       tenant.bytes > options_.inbox_bytes_per_tenant_max)) {
    auto node = tenant.entries.extract(tenant.entries.begin());
    Entry& oldest = node.mapped();
    dirty_.mark(oldest.row);
    tenant.bytes -= size_of(oldest.record);
    dropped.push_back(oldest.record);
    if (oldest.received + options_.inbox_key_age_max <= now || MUTANT(inbox_forgets_keys)) {
      by_row_.erase(oldest.row);
      continue;
    }
    StoredMessage& message = oldest.record.message;
    oldest.record.digest = digest_of(message);
    message = {std::move(message.id), std::move(message.corr), {}, {}, std::nullopt};
    tenant.keys.insert(std::move(node));  // the entry itself does not move
  }
  while (tenant.keys.size() > options_.inbox_keys_per_tenant_max) forget_key(tenant);
}

void Inbox::forget_key(Tenant& tenant) {
  const Entry& oldest = tenant.keys.begin()->second;
  dirty_.mark(oldest.row);
  by_row_.erase(oldest.row);
  tenant.keys.erase(tenant.keys.begin());
}

void Inbox::handle_timeout(Instant now) {
  for (auto& [name, tenant] : tenants_) {
    while (!tenant.keys.empty() && tenant.keys.begin()->second.received + options_.inbox_key_age_max <= now) {
      forget_key(tenant);
    }
  }
}

std::optional<Instant> Inbox::poll_timeout() const {
  std::optional<Instant> next;
  for (const auto& [name, tenant] : tenants_) {
    if (tenant.keys.empty()) continue;
    const Instant due = tenant.keys.begin()->second.received + options_.inbox_key_age_max;
    next = next ? std::min(*next, due) : due;
  }
  return next;
}

Inbox::Entry& Inbox::insert(InboxRecord record, std::string row, Instant received) {
  next_number_ = std::max(next_number_, record.number + 1);
  Tenant& tenant = tenants_[record.worker.tenant];
  if (record.digest.empty()) tenant.bytes += size_of(record);
  const std::uint64_t number = record.number;
  const auto [at, is_new] = (record.digest.empty() ? tenant.entries : tenant.keys).try_emplace(number);
  CHECK(is_new);
  Entry& entry = at->second;
  entry.record = std::move(record);
  entry.row = std::move(row);
  entry.received = received;
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
