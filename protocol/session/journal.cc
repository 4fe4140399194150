#include "protocol/session/journal.h"

#include <algorithm>
#include <array>

#include "protocol/base/check.h"
#include "protocol/base/mutant.h"

namespace windlass {
namespace {

// What an entry costs beside its texts: the node with its two links, a bucket, a place in the ring of
// completed ones.
constexpr std::size_t kEntryBytes = 256;

TextPairView pair(JournalKey key) {
  return {key.id, key.corr};
}

}  // namespace

std::optional<ErrorCode> refusal_code(JournalVerdict verdict) {
  switch (verdict) {
    case JournalVerdict::New:
    case JournalVerdict::InProgress:
    case JournalVerdict::Done:
      return std::nullopt;
    case JournalVerdict::Conflict:
      //= IDM-2
      return ErrorCode::ResultDuplicate;
    case JournalVerdict::Full:
      //= IDM-3
      return ErrorCode::LimitCapacity;
  }
  CHECK(false);
  return std::nullopt;
}

Digest content_digest(const Message& message) {
  const auto attachment = message.attachment();
  // The number of parts tells an empty attachment from none.
  const std::array<BytesView, 4> parts = {message.type(), message.payload(),
                                          attachment ? attachment->type : BytesView{},
                                          attachment ? attachment->bytes : BytesView{}};
  return sha256_parts(std::span{parts}.first(attachment ? 4 : 2));
}

Journal::Journal(JournalConfig config) : config_(config) {
  static_assert(sizeof(Entries::value_type) + 6 * sizeof(void*) <= kEntryBytes);
  CHECK(config_.ttl >= Duration::zero());
}

bool Journal::contains(JournalKey key) const {
  return entries_.contains(pair(key));
}

JournalAnswer Journal::begin(const Message& message, Instant now) {
  handle_timeout(now);
  const JournalKey key{message.id(), message.corr()};
  const Digest digest = content_digest(message);
  if (const auto known = entries_.find(pair(key)); known != entries_.end()) {
    const Entry& entry = known->second;
    //= IDM-2
    if (entry.digest != digest && !MUTANT(journal_ignores_body))
      return {JournalVerdict::Conflict, {}, digest};
    //= IDM-1
    if (!entry.result) return {JournalVerdict::InProgress, {}, digest};
    return {JournalVerdict::Done, *entry.result, digest};
  }
  //= IDM-3
  if (entries_.size() >= config_.entries_max || bytes_ + cost_in_progress(key) > config_.bytes_max) {
    return {JournalVerdict::Full, {}, digest};
  }
  add(key, digest);
  return {JournalVerdict::New, {}, digest};
}

Result<Done> Journal::complete(JournalKey key, BytesView result, Instant now) {
  handle_timeout(now);
  const auto entry = in_progress(key);
  const std::size_t bytes_after = bytes_ - config_.result_bytes_reserved + result.size();
  if (result.size() > config_.result_bytes_reserved && bytes_after > config_.bytes_max) {
    return Error{ErrorCode::LimitCapacity, Blame::Local, "the journal has no room for a result of this size"};
  }
  store(*entry, result, now);
  return Done{};
}

void Journal::forget(JournalKey key) {
  const auto entry = in_progress(key);
  bytes_ -= cost_in_progress(key);
  entries_.erase(entry);
}

void Journal::handle_timeout(Instant now) {
  const Duration ttl = MUTANT(journal_forgets_results) ? Duration::zero() : config_.ttl;
  //= IDM-3
  while (!completed_.empty() && now - completed_.front()->second.completed_at >= ttl) {
    const auto oldest = entries_.find(completed_.pop_front()->first);
    const auto& [texts, entry] = *oldest;
    bytes_ -= kEntryBytes + texts.first.size() + texts.second.size() + entry.result->size();
    entries_.erase(oldest);
  }
}

std::optional<Instant> Journal::poll_timeout() const {
  if (completed_.empty()) return std::nullopt;
  return completed_.front()->second.completed_at + config_.ttl;
}

void Journal::restore(std::span<const JournalEntry> entries, Instant now) {
  CHECK(entries_.empty());
  for (const JournalEntry& entry : entries) {
    CHECK(entry.age >= Duration::zero());
    auto& added = add(entry.key, entry.digest);
    if (entry.result) store(added, *entry.result, now - entry.age);
  }
}

std::vector<JournalEntry> Journal::entries(Instant now) const {
  std::vector<const Entries::value_type*> ordered;
  ordered.reserve(entries_.size());
  for (std::size_t i = 0; i < completed_.size(); ++i) ordered.push_back(completed_[i]);
  for (const auto& entry : entries_) {
    if (!entry.second.result) ordered.push_back(&entry);
  }
  std::sort(ordered.begin() + static_cast<std::ptrdiff_t>(completed_.size()), ordered.end(),
            [](const auto* left, const auto* right) { return left->second.number < right->second.number; });

  std::vector<JournalEntry> views;
  views.reserve(ordered.size());
  for (const auto* node : ordered) {
    const auto& [texts, entry] = *node;
    views.push_back({.key = {texts.first, texts.second}, .digest = entry.digest, .result = {}, .age = {}});
    if (!entry.result) continue;
    views.back().result = *entry.result;
    views.back().age = std::max(now - entry.completed_at, Duration::zero());
  }
  return views;
}

std::size_t Journal::cost_in_progress(JournalKey key) const {
  return kEntryBytes + key.id.size() + key.corr.size() + config_.result_bytes_reserved;
}

Journal::Entries::value_type& Journal::add(JournalKey key, const Digest& digest) {
  const auto [entry, is_new] = entries_.try_emplace(TextPair{pair(key)});
  CHECK(is_new);
  entry->second.digest = digest;
  entry->second.number = next_number_++;
  bytes_ += cost_in_progress(key);
  return *entry;
}

void Journal::store(Entries::value_type& entry, BytesView result, Instant completed_at) {
  // Entries expire in the order of this ring; one that seems older than its predecessor is kept a little
  // longer.
  const Instant newest = completed_.empty() ? completed_at : completed_.back()->second.completed_at;
  entry.second.completed_at = std::max(completed_at, newest);
  entry.second.result = Bytes{result};
  bytes_ = bytes_ - config_.result_bytes_reserved + result.size();
  completed_.push_back(&entry);
}

Journal::Entries::iterator Journal::in_progress(JournalKey key) {
  const auto entry = entries_.find(pair(key));
  CHECK(entry != entries_.end());
  CHECK(!entry->second.result.has_value());
  return entry;
}

}  // namespace windlass
