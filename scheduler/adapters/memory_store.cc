#include "scheduler/adapters/memory_store.h"

#include <utility>

namespace windlass {
namespace {

std::size_t size_of(const std::string& key, const Bytes& value) {
  return key.size() + value.size();
}

}  // namespace

Result<Snapshot> MemoryStore::load() {
  Snapshot snapshot{image_->version, {}};
  snapshot.rows.reserve(image_->rows.size());
  for (const auto& [key, value] : image_->rows) snapshot.rows.push_back({key, value});
  return snapshot;
}

Result<Version> MemoryStore::commit(const WriteBatch& batch, Version expected) {
  if (image_->version != expected) {
    return Error{ErrorCode::StoreStale, Blame::Local,
                 "the store is at version " + std::to_string(image_->version.value()) + ", not at " +
                     std::to_string(expected.value()) + ": another scheduler writes to it"};
  }
  if (batch.empty()) return expected;
  // What the batch leaves in each row it names; nothing is touched before it is known to fit.
  std::map<std::string, const std::optional<Bytes>*> last;
  for (const Write& write : batch) last[write.key] = &write.value;
  std::size_t bytes = image_->bytes;
  for (const auto& [key, value] : last) {
    const auto old = image_->rows.find(key);
    if (old != image_->rows.end()) bytes -= size_of(key, old->second);
    if (*value) bytes += size_of(key, **value);
  }
  if (bytes > image_->bytes_max && bytes > image_->bytes) {
    return Error{ErrorCode::StoreFull, Blame::Local,
                 "the memory store is full: it may hold " + std::to_string(image_->bytes_max) + " bytes"};
  }
  for (const auto& [key, value] : last) {
    if (*value) {
      image_->rows.insert_or_assign(key, **value);
    } else {
      image_->rows.erase(key);
    }
  }
  image_->bytes = bytes;
  image_->version = Version{expected.value() + 1};
  return image_->version;
}

}  // namespace windlass
