// Recovery of a journal from any bytes: as they are (a damaged disk), or framed as whole records with any
// content, which raw bytes would seldom get to be. What is recovered must restore, and come back the same
// through a compacted log.
#include <cstddef>
#include <cstdint>

#include "protocol/base/check.h"
#include "protocol/session/journal_log.h"
#include "protocol/session/journal_record.h"

namespace windlass {
namespace {

// Each record: its kind, the length of its content, the content. What is left over becomes a torn tail.
Bytes framed(BytesView script) {
  Bytes log;
  while (script.size() >= 2) {
    const auto kind = static_cast<JournalRecordKind>(static_cast<unsigned char>(script[0]) % 6);
    const BytesView content = script.substr(2, static_cast<unsigned char>(script[1]));
    log.append(encode_journal_record(kind, content));
    script.remove_prefix(2 + content.size());
  }
  return log.append(script);
}

void check_recovery(BytesView log) {
  const auto recovered = recover(log);
  if (!recovered) return;
  CHECK(recovered->valid_bytes <= log.size());
  const auto without_tail = recover(log.substr(0, recovered->valid_bytes));
  CHECK(without_tail.has_value());
  CHECK(without_tail->entries == recovered->entries);
  if (recovered->run_time > std::chrono::hours{24 * 365 * 100}) return;  // no process has run for so long

  const Instant now{seconds{5}};
  Journal journal;
  journal.restore(recovered->entries, now);
  const Bytes compacted = JournalLog{recovered->run_time, now}.compact(journal, now);
  const auto again = recover(compacted);
  CHECK(again.has_value());
  CHECK(again->valid_bytes == compacted.size());
  CHECK(again->run_time == recovered->run_time);
  CHECK(again->entries == journal.entries(now));
}

}  // namespace
}  // namespace windlass

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace windlass;
  if (size < 1) return 0;
  const BytesView rest{reinterpret_cast<const char*>(data) + 1, size - 1};
  check_recovery(data[0] % 2 == 0 ? framed(rest) : Bytes{rest});
  return 0;
}
