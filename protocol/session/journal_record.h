// The framing of the journal's log: bytes that can be told whole from torn or damaged. What a record means is
// journal_log's.
//   'W' 'J' version kind | bytes of the body (4, big-endian) | check (8) | body
// The check is the beginning of a SHA-256 over all the rest. In a body a zero byte follows each "WJ", so that
// a record begins nowhere but where one was written, whatever a peer puts into a text: whole records can be
// looked for behind damage.
#pragma once

#include <cstddef>
#include <optional>

#include "protocol/base/bytes.h"

namespace windlass {

enum class JournalRecordKind : char { Begin = 1, Complete = 2, Forget = 3, Clock = 4 };

inline constexpr char kJournalRecordVersion = 1;  // never 0, which marks a "WJ" that begins no record

Bytes encode_journal_record(JournalRecordKind kind, BytesView content);

struct JournalRecord {
  char version = 0;
  char kind = 0;  // as written: may be none of JournalRecordKind
  BytesView body;
  std::size_t bytes = 0;  // of the whole record
};

// The record that begins at `offset`, if it is whole and undamaged.
std::optional<JournalRecord> read_journal_record(BytesView log, std::size_t offset);

// Whether any whole record begins at or after `offset`.
bool has_journal_record(BytesView log, std::size_t offset);

// Bodies are escaped content. has_escapes() is false for nearly all, which can be read in place.
bool has_escapes(BytesView body);
Bytes unescape_journal_body(BytesView body);

}  // namespace windlass
