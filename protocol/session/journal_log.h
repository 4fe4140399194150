// The journal as bytes to append to a file, and back. Does no I/O: a shell appends what encode_* give and
// syncs before it goes on.
//   begin() says New -> append encode_begin(), sync -> do the work -> append encode_complete(), sync ->
//   complete() -> report.
// Time in the log is running time: what the journal has lived through, carried from run to run. Wall time
// would make entries look old after a machine booted with a wrong clock, and steady time does not survive a
// restart. While the process is down, and after the last record of a run, it stands still, so entries are
// kept rather longer than too short.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "protocol/base/bytes.h"
#include "protocol/base/result.h"
#include "protocol/base/time.h"
#include "protocol/session/journal.h"

namespace windlass {

class JournalLog final {
 public:
  // `run_time` is that of RecoveredJournal, or zero for a new log.
  explicit JournalLog(Duration run_time, Instant now) : started_at_(now - run_time) {}

  Bytes encode_begin(JournalKey key, const Digest& digest, Instant now) const;
  Bytes encode_complete(JournalKey key, BytesView result, Instant now) const;
  Bytes encode_forget(JournalKey key, Instant now) const;
  Bytes encode_clock(Instant now) const;  // lets entries age in a process that has nothing else to record

  // A whole log that says the same as everything appended so far. Write it to a new file, sync, rename over
  // the old one.
  Bytes compact(const Journal& journal, Instant now) const;

 private:
  Duration run_time(Instant now) const { return now - started_at_; }

  Instant started_at_;
};

struct RecoveredJournal {
  std::vector<JournalEntry> entries;  // for Journal::restore(); views into the log or into `unescaped`
  std::size_t valid_bytes = 0;        // truncate the file to this before appending
  Duration run_time{};
  std::deque<Bytes> unescaped;  // bodies that could not be read in place
};

// Reads a log from its start. A torn tail (bytes at the end that are no whole record, with no whole record
// after them) is left out. Damage anywhere else, a record that contradicts those before it, and a newer
// version are refused with the byte offset: nobody can tell then which work was done, so a person has to.
Result<RecoveredJournal> recover(BytesView log);

}  // namespace windlass
