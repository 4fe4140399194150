// What a business receiver has done already, so that a message that comes again takes no effect again. Keyed
// by (id, corr), bounded, and it never forgets early: when it is full of young entries it refuses new work.
// Does not do the work and does not write to disk; journal_log.h gives the bytes for that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "protocol/base/bytes.h"
#include "protocol/base/error_code.h"
#include "protocol/base/limits.h"
#include "protocol/base/result.h"
#include "protocol/base/ring.h"
#include "protocol/base/text_pair.h"
#include "protocol/base/time.h"
#include "protocol/crypto/digest.h"
#include "protocol/messages/message.h"

namespace windlass {

struct JournalConfig {
  std::size_t entries_max = limits::kJournalEntriesMax;
  std::size_t bytes_max = limits::kJournalBytesMax;
  std::size_t result_bytes_reserved = limits::kJournalResultBytesReserved;
  Duration ttl = limits::kJournalTtl;  // counted from the completion
};

enum class JournalVerdict {
  New,         // not seen before: do it, then complete() it, or forget() it if it was refused
  InProgress,  // being done: the answer will come, nothing to do
  Done,        // done before: answer with the stored result
  Conflict,    // the key is known with another content
  Full,        // no room until entries expire
};

// The code a refusing verdict is answered with; nothing for the others.
std::optional<ErrorCode> refusal_code(JournalVerdict verdict);

struct JournalAnswer {
  JournalVerdict verdict = JournalVerdict::New;
  BytesView result{};  // of Done; valid until the journal is changed
  Digest digest{};     // of the content, for the log
};

struct JournalKey {
  std::string_view id;
  std::string_view corr;
  friend bool operator==(const JournalKey&, const JournalKey&) = default;
};

// One entry as it is handed to and from a log. All views: of the journal, or of the log's bytes.
struct JournalEntry {
  JournalKey key;
  Digest digest{};
  std::optional<BytesView> result;  // absent: in progress
  Duration age{};                   // since the completion; 0 while in progress
  friend bool operator==(const JournalEntry&, const JournalEntry&) = default;
};

// What two frames of one key must agree in: type, payload, attachment.
Digest content_digest(const Message& message);

class Journal final {
 public:
  explicit Journal(JournalConfig config = {});
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  JournalAnswer begin(const Message& message, Instant now);

  // Stores the result of an entry in progress. One of up to `result_bytes_reserved` always fits. A larger one
  // that does not is refused with E.LIMIT.CAPACITY and the entry stays in progress: complete it with
  // something shorter.
  Result<Done> complete(JournalKey key, BytesView result, Instant now);

  // Only of an entry in progress whose work was refused before it took any effect.
  void forget(JournalKey key);

  void handle_timeout(Instant now);
  void set_ttl(Duration ttl) { config_.ttl = ttl; }
  bool contains(JournalKey key) const;
  std::optional<Instant> poll_timeout() const;

  // After a restart, into an empty journal. Entries in progress were interrupted: nobody knows whether they
  // took effect. The owner completes or forgets each, because a sender that asks again hears InProgress until
  // then.
  void restore(std::span<const JournalEntry> entries, Instant now);

  // Completed ones by time of completion, then those in progress in the order they began.
  std::vector<JournalEntry> entries(Instant now) const;

  std::size_t size() const { return entries_.size(); }
  std::size_t bytes() const {
    return bytes_;
  }  // accounted, with what is reserved; at most bytes_max unless restored so

 private:
  struct Entry {
    Digest digest{};
    std::uint64_t number = 0;  // order of begin()
    std::optional<Bytes> result;
    Instant completed_at{};
  };
  using Entries = std::unordered_map<TextPair, Entry, TextPairHash, TextPairEqual>;

  std::size_t cost_in_progress(JournalKey key) const;
  Entries::value_type& add(JournalKey key, const Digest& digest);
  void store(Entries::value_type& entry, BytesView result, Instant completed_at);
  Entries::iterator in_progress(JournalKey key);

  JournalConfig config_;
  Entries entries_;
  Ring<const Entries::value_type*> completed_;  // oldest first; map nodes do not move
  std::size_t bytes_ = 0;
  std::uint64_t next_number_ = 0;
};

}  // namespace windlass
