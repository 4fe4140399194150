// A body is
//   begin: time key digest | complete: time key result | forget: time key | clock: time
// with time in nanoseconds (8 bytes, big-endian) and each text of a key preceded by its length (4).
#include "protocol/session/journal_log.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "protocol/base/big_endian.h"
#include "protocol/base/mutant.h"
#include "protocol/base/text_pair.h"
#include "protocol/session/journal_record.h"

namespace windlass {
namespace {

using Kind = JournalRecordKind;

Bytes body_of(JournalKey key, BytesView rest, Duration time) {
  Bytes body;
  append_big_endian(body, static_cast<std::uint64_t>(time.count()), 8);
  for (const std::string_view text : {key.id, key.corr}) {
    append_big_endian(body, text.size(), 4);
    body.append(text);
  }
  return body.append(rest);
}

// Takes fields off the front of a body. Asking for more than there is sets `failed` and gives nothing.
struct BodyReader {
  BytesView take(std::size_t count) {
    if (count > rest.size()) {
      failed = true;
      return {};
    }
    const BytesView taken = rest.substr(0, count);
    rest.remove_prefix(count);
    return taken;
  }
  std::string_view text() { return take(big_endian(take(4))); }

  BytesView rest;
  bool failed = false;
};

// Plays records one after the other into a list of entries.
class Replay final {
 public:
  // False for a record that cannot follow those before it.
  bool apply(const JournalRecord& record) {
    BodyReader reader{has_escapes(record.body) ? unescaped_.emplace_back(unescape_journal_body(record.body))
                                               : record.body};
    const auto time = static_cast<Duration::rep>(big_endian(reader.take(8)));
    if (time < run_time_.count()) return false;
    run_time_ = Duration{time};
    const auto kind = static_cast<Kind>(record.kind);
    if (kind == Kind::Clock) return !reader.failed && reader.rest.empty();
    const JournalKey key{reader.text(), reader.text()};
    if (reader.failed) return false;
    switch (kind) {
      case Kind::Begin:
        return begin(key, reader.rest);
      case Kind::Complete:
        return complete(key, reader.rest);
      case Kind::Forget:
        return reader.rest.empty() && forget(key);
      case Kind::Clock:
        break;
    }
    return false;
  }

  RecoveredJournal finish(std::size_t valid_bytes) && {
    RecoveredJournal recovered{
        .entries = {}, .valid_bytes = valid_bytes, .run_time = run_time_, .unescaped = std::move(unescaped_)};
    recovered.entries.reserve(places_.size());
    for (Slot& slot : slots_) {
      if (!slot.is_live) continue;
      if (slot.entry.result) slot.entry.age = run_time_ - slot.at;
      recovered.entries.push_back(slot.entry);
    }
    return recovered;
  }

 private:
  struct Slot {
    JournalEntry entry;
    Duration at{};
    bool is_live = true;
  };

  // A completed key may begin again: the journal has let it expire in between.
  bool begin(JournalKey key, BytesView digest) {
    if (digest.size() != kDigestBytes) return false;
    const auto known = places_.find({key.id, key.corr});
    if (known != places_.end() && !slots_[known->second].entry.result) return false;
    JournalEntry entry{.key = key, .digest = {}, .result = {}, .age = {}};
    std::copy(digest.begin(), digest.end(), entry.digest.begin());
    put(entry);
    return true;
  }

  // Moves the entry to the end, so that completed ones stand in the order of their completion.
  bool complete(JournalKey key, BytesView result) {
    const auto known = places_.find({key.id, key.corr});
    if (known == places_.end() || slots_[known->second].entry.result) return false;
    JournalEntry entry = slots_[known->second].entry;
    entry.result = result;
    put(entry);
    return true;
  }

  bool forget(JournalKey key) {
    const auto known = places_.find({key.id, key.corr});
    if (known == places_.end() || slots_[known->second].entry.result) return false;
    slots_[known->second].is_live = false;
    places_.erase(known);
    return true;
  }

  void put(const JournalEntry& entry) {
    const auto [place, is_new] = places_.try_emplace({entry.key.id, entry.key.corr}, slots_.size());
    if (!is_new) slots_[std::exchange(place->second, slots_.size())].is_live = false;
    slots_.push_back({.entry = entry, .at = run_time_});
  }

  std::vector<Slot> slots_;
  std::unordered_map<TextPairView, std::size_t, TextPairHash, TextPairEqual> places_;
  std::deque<Bytes> unescaped_;
  Duration run_time_{};
};

Error damaged(std::size_t offset, const char* what, SourceLine where = SourceLine::here()) {
  return {ErrorCode::Internal, Blame::Local, "journal log, byte " + std::to_string(offset) + ": " + what,
          where};
}

}  // namespace

Bytes JournalLog::encode_begin(JournalKey key, const Digest& digest, Instant now) const {
  return encode_journal_record(Kind::Begin, body_of(key, view_of(digest), run_time(now)));
}

Bytes JournalLog::encode_complete(JournalKey key, BytesView result, Instant now) const {
  return encode_journal_record(Kind::Complete, body_of(key, result, run_time(now)));
}

Bytes JournalLog::encode_forget(JournalKey key, Instant now) const {
  return encode_journal_record(Kind::Forget, body_of(key, {}, run_time(now)));
}

Bytes JournalLog::encode_clock(Instant now) const {
  Bytes body;
  append_big_endian(body, static_cast<std::uint64_t>(run_time(now).count()), 8);
  return encode_journal_record(Kind::Clock, body);
}

Bytes JournalLog::compact(const Journal& journal, Instant now) const {
  Bytes log;
  for (const JournalEntry& entry : journal.entries(now)) {
    // A completed entry is dated by its completion alone; one restored from before this log's origin starts
    // at it.
    const Instant at = std::max(now - entry.age, started_at_);
    log.append(encode_begin(entry.key, entry.digest, at));
    if (entry.result) log.append(encode_complete(entry.key, *entry.result, at));
  }
  return log.append(encode_clock(now));
}

Result<RecoveredJournal> recover(BytesView log) {
  Replay replay;
  std::size_t offset = 0;
  while (offset < log.size()) {
    const auto record = read_journal_record(log, offset);
    //= IDM-4
    if (!record) {
      if (has_journal_record(log, offset + 1)) return damaged(offset, "damaged, with whole records after it");
      break;
    }
    if (MUTANT(journal_loses_last_record) && offset + record->bytes == log.size()) break;
    if (record->version != kJournalRecordVersion) return damaged(offset, "written by another version");
    if (!replay.apply(*record)) return damaged(offset, "contradicts the records before it");
    offset += record->bytes;
  }
  return std::move(replay).finish(offset);
}

}  // namespace windlass
