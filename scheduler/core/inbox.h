// Business messages of workers that answer no command: kept for whoever asks, bounded per tenant by count and
// bytes. The oldest go first, and one that comes a second time, because its session ended before it was
// acknowledged, is not kept twice. That holds for messages that made room for others too: what they were
// called, and a digest of what they said, is kept for as long as a worker may send them again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "protocol/messages/message.h"
#include "scheduler/core/core_options.h"
#include "scheduler/core/dirty_rows.h"
#include "scheduler/core/values.h"

namespace windlass {

struct InboxFilter {
  std::optional<TenantId> tenant;
  std::optional<InstanceId> worker;
  std::uint64_t after_number = 0;
  std::size_t count_max = 100;
};

class Inbox final {
 public:
  Inbox(const CoreOptions& options, DirtyRows& dirty) : options_(options), dirty_(dirty) {}
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  void restore(InboxRecord record, Now now);
  enum class Added : std::uint8_t { Kept, Known, Conflict };
  // Known: it is here already. Conflict: another one has its id, and stays. Those that made room are moved to
  // `dropped`.
  // `session` is empty unless ids are unique within it only.
  Added add(const WorkerKey& worker, const std::string& session, const Message& message, Now now,
            std::vector<InboxRecord>& dropped);

  std::optional<Bytes> row_value(std::string_view row) const;
  void begin_store(std::string_view row);
  void end_store(std::string_view row, bool is_committed);

  // Forgets the names of messages that made room long ago.
  void handle_timeout(Instant now);
  std::optional<Instant> poll_timeout() const;

  // Only what is in the store; oldest first.
  void for_each(const InboxFilter& filter, const std::function<void(const InboxRecord&)>& visit) const;
  std::size_t size() const { return by_row_.size(); }  // names of those that made room too

 private:
  struct Entry {
    InboxRecord record;
    std::string row;
    Instant received{};
    bool is_in_batch = false;
    bool is_stored = false;
  };
  struct Tenant {
    std::map<std::uint64_t, Entry> entries;  // by number
    std::map<std::uint64_t, Entry> keys;     // of those that made room; likewise
    std::size_t bytes = 0;
  };

  Entry& insert(InboxRecord record, std::string row, Instant received);
  void make_room(Tenant& tenant, Instant now, std::vector<InboxRecord>& dropped);
  void forget_key(Tenant& tenant);

  const CoreOptions& options_;
  DirtyRows& dirty_;
  std::map<TenantId, Tenant> tenants_;
  std::unordered_map<std::string_view, Entry*> by_row_;  // views of Entry::row; map nodes do not move
  std::uint64_t next_number_ = 1;
};

}  // namespace windlass
