// Records that are in memory and in the store under one key, with what must hold if the store refuses: what
// was promised to nobody is taken back, what happened stays and is written later.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "scheduler/core/dirty_rows.h"

namespace windlass {

template <class T>
class DurableRows final {
 public:
  explicit DurableRows(DirtyRows& dirty) : dirty_(dirty) {}
  DurableRows(const DurableRows&) = delete;
  DurableRows& operator=(const DurableRows&) = delete;

  // After a restart.
  void restore(std::string row, T value) {
    Entry entry;
    entry.value = std::move(value);
    rows_.insert_or_assign(std::move(row), std::move(entry));
  }

  // Somebody is owed an answer to this: void if the store refuses it. No value erases.
  void propose(const std::string& row, std::optional<T> value) {
    Entry& entry = rows_[row];
    if (!entry.is_proposed) entry.fallback = entry.value;
    entry.is_proposed = true;
    set(row, entry, std::move(value));
  }
  // A fact: it holds whatever the store says.
  void note(const std::string& row, std::optional<T> value) {
    Entry& entry = rows_[row];
    if (!value) entry.fallback.reset();
    set(row, entry, std::move(value));
  }

  // As decided so far.
  const T* find(std::string_view row) const {
    const auto found = rows_.find(row);
    return found == rows_.end() || !found->second.value ? nullptr : &*found->second.value;
  }
  // Whether a proposal of the row waits for the store.
  bool is_proposed(std::string_view row) const {
    const auto found = rows_.find(row);
    return found != rows_.end() && found->second.is_proposed;
  }
  // As anybody outside may see them; in order of their keys. `visit(row, value)`.
  template <class Visit>
  void for_each_durable(const Visit& visit) const {
    for (const auto& [row, entry] : rows_) {
      const auto& shown = entry.is_proposed ? entry.fallback : entry.value;
      if (shown) visit(row, *shown);
    }
  }
  // As decided so far.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const auto& [row, entry] : rows_) {
      if (entry.value) visit(row, *entry.value);
    }
  }

  // Storing. The value as it goes into the batch; nothing: it is erased.
  std::optional<T> begin_store(std::string_view row) {
    const auto found = rows_.find(row);
    if (found == rows_.end()) return std::nullopt;
    found->second.is_in_batch = true;
    found->second.in_batch = found->second.value;
    found->second.batch_change = found->second.change;
    return found->second.value;
  }
  void end_store(std::string_view row, bool is_committed) {
    const auto found = rows_.find(row);
    if (found == rows_.end() || !std::exchange(found->second.is_in_batch, false)) return;
    Entry& entry = found->second;
    std::optional<T> stored = std::exchange(entry.in_batch, std::nullopt);
    if (!is_committed) return;
    if (entry.batch_change == entry.change) {
      entry.is_proposed = false;
      entry.fallback.reset();
      if (!entry.value) rows_.erase(found);
    } else if (entry.is_proposed) {
      entry.fallback = std::move(stored);
    }
  }
  // The store refuses: proposals are no more.
  void drop_unstored() {
    for (auto at = rows_.begin(); at != rows_.end();) {
      Entry& entry = at->second;
      if (std::exchange(entry.is_proposed, false)) {
        entry.value = std::exchange(entry.fallback, std::nullopt);
        dirty_.mark(at->first);  // a commit that failed may have happened after all
      }
      at = entry.value ? std::next(at) : rows_.erase(at);
    }
  }

 private:
  struct Entry {
    std::optional<T> value;
    std::optional<T> fallback;  // of a proposal: what holds if it is refused
    std::optional<T> in_batch;
    bool is_proposed = false;
    bool is_in_batch = false;
    std::uint64_t change = 0;
    std::uint64_t batch_change = 0;
  };

  void set(const std::string& row, Entry& entry, std::optional<T> value) {
    entry.value = std::move(value);
    ++entry.change;
    dirty_.mark(row);
  }

  DirtyRows& dirty_;
  std::map<std::string, Entry, std::less<>> rows_;
};

}  // namespace windlass
