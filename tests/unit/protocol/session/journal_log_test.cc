#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/base/random.h"
#include "protocol/session/journal_log.h"

namespace windlass {
namespace {

constexpr Instant kOpened{seconds{1000}};

Digest digest(std::string_view content) {
  return sha256(content);
}

Bytes join(const std::vector<Bytes>& records) {
  Bytes log;
  for (const Bytes& record : records) log += record;
  return log;
}

// Records of every kind and of different sizes, with what a peer may put into texts.
std::vector<Bytes> some_records() {
  const JournalLog log{Duration::zero(), kOpened};
  return {
      log.encode_begin({"a", ""}, digest("A"), kOpened + seconds{1}),
      log.encode_begin({"b", "corr"}, digest("B"), kOpened + seconds{2}),
      log.encode_complete({"a", ""}, "result of a", kOpened + seconds{3}),
      log.encode_begin({"c", std::string("\0WJ\x01\x01", 5)}, digest("C"), kOpened + seconds{4}),
      log.encode_forget({"b", "corr"}, kOpened + seconds{5}),
      log.encode_complete({"c", std::string("\0WJ\x01\x01", 5)}, std::string(300, 'W'), kOpened + seconds{6}),
      log.encode_clock(kOpened + seconds{7}),
      log.encode_begin({"d", ""}, digest("D"), kOpened + seconds{8}),
      log.encode_complete({"d", ""}, "", kOpened + seconds{9}),
  };
}

// Entries without their ages, as texts, to compare what two logs say.
using Said = std::map<std::pair<std::string, std::string>, std::pair<Digest, std::optional<std::string>>>;

Said said(const std::vector<JournalEntry>& entries) {
  Said all;
  for (const JournalEntry& entry : entries) {
    auto& place = all[{std::string(entry.key.id), std::string(entry.key.corr)}];
    place.first = entry.digest;
    if (entry.result) place.second = std::string(*entry.result);
  }
  return all;
}

TEST(JournalLog, EmptyIsAnEmptyJournal) {
  const auto recovered = recover("");
  ASSERT_TRUE(recovered.has_value());
  EXPECT_TRUE(recovered->entries.empty());
  EXPECT_EQ(recovered->valid_bytes, 0U);
  EXPECT_EQ(recovered->run_time, Duration::zero());
}

TEST(JournalLog, RecoversEntriesInOrderWithTheirAges) {
  const Bytes log = join(some_records());
  const auto recovered = recover(log);
  ASSERT_TRUE(recovered.has_value()) << recovered.error().reason;
  EXPECT_EQ(recovered->valid_bytes, log.size());
  EXPECT_EQ(recovered->run_time, seconds{9});
  const std::string corr("\0WJ\x01\x01", 5);
  const std::string long_result(300, 'W');
  const std::vector<JournalEntry> expected = {
      {{"a", ""}, digest("A"), "result of a", seconds{6}},
      {{"c", corr}, digest("C"), long_result, seconds{3}},
      {{"d", ""}, digest("D"), "", seconds{0}},
  };
  EXPECT_EQ(recovered->entries, expected);
}

//= IDM-4
TEST(JournalLog, CutAtAnyByteKeepsEveryWholeRecordAndDropsTheTornOne) {
  const auto records = some_records();
  const Bytes log = join(records);
  std::size_t whole = 0;  // records that end at or before the cut
  std::size_t whole_bytes = 0;
  for (std::size_t cut = 0; cut <= log.size(); ++cut) {
    if (whole < records.size() && cut == whole_bytes + records[whole].size())
      whole_bytes += records[whole++].size();
    const auto recovered = recover(BytesView(log).substr(0, cut));
    ASSERT_TRUE(recovered.has_value()) << cut << ": " << recovered.error().reason;
    ASSERT_EQ(recovered->valid_bytes, whole_bytes) << cut;
    const auto again = recover(BytesView(log).substr(0, whole_bytes));
    ASSERT_EQ(recovered->entries, again->entries) << cut;
  }
  EXPECT_EQ(whole, records.size());
}

//= IDM-4
TEST(JournalLog, DamageInTheMiddleIsRefusedWithItsOffset) {
  const auto records = some_records();
  const Bytes log = join(records);
  std::size_t record = 0;
  std::size_t record_at = 0;
  for (std::size_t place = 0; place < log.size(); ++place) {
    if (place == record_at + records[record].size()) record_at += records[record++].size();
    for (const unsigned flip : {0x01U, 0x80U, 0xffU}) {
      Bytes wrong = log;
      wrong[place] = static_cast<char>(static_cast<unsigned char>(wrong[place]) ^ flip);
      const auto recovered = recover(wrong);
      if (record + 1 == records.size()) {  // the last record: as good as torn
        ASSERT_TRUE(recovered.has_value()) << place;
        ASSERT_EQ(recovered->valid_bytes, record_at);
        continue;
      }
      ASSERT_FALSE(recovered.has_value()) << "byte " << place << " flipped by " << flip;
      ASSERT_NE(recovered.error().reason.find("byte " + std::to_string(record_at) + ":"), std::string::npos)
          << recovered.error().reason;
    }
  }
}

//= IDM-4
TEST(JournalLog, BytesLostFromTheMiddleAreRefused) {  // as after appending behind a torn record
  const auto records = some_records();
  for (std::size_t lost = 0; lost + 1 < records.size(); ++lost) {
    const auto& record = records[lost];
    for (const std::size_t kept : {std::size_t{1}, record.size() / 2, record.size() - 1}) {
      auto with_hole = records;
      with_hole[lost] = record.substr(0, kept);
      EXPECT_FALSE(recover(join(with_hole)).has_value()) << lost << " kept " << kept;
    }
  }
}

//= IDM-4
TEST(JournalLog, ATornTailOfZerosOrGarbageIsDropped) {
  const Bytes log = join(some_records());
  for (const Bytes& tail :
       {Bytes(1, '\0'), Bytes(5000, '\0'), Bytes(23, 'W'), Bytes("WJWJWJWJ"), Bytes(400, 'J')}) {
    const auto recovered = recover(log + tail);
    ASSERT_TRUE(recovered.has_value()) << recovered.error().reason;
    EXPECT_EQ(recovered->valid_bytes, log.size());
  }
}

//= IDM-4
TEST(JournalLog, WhatAPeerPutIntoATornRecordIsNotTakenForRecords) {
  const JournalLog log{Duration::zero(), kOpened};
  const Bytes begun = log.encode_begin({"a", ""}, digest("A"), kOpened);
  const Bytes planted = log.encode_begin({"planted", ""}, digest("P"), kOpened);
  const Bytes last = log.encode_complete({"a", ""}, planted + planted, kOpened);
  const Bytes whole = begun + last;
  EXPECT_EQ(recover(whole)->entries[0].result, planted + planted);
  for (std::size_t cut = begun.size(); cut < whole.size(); ++cut) {
    const auto recovered = recover(BytesView(whole).substr(0, cut));
    ASSERT_TRUE(recovered.has_value()) << cut << ": " << recovered.error().reason;
    ASSERT_EQ(recovered->valid_bytes, begun.size()) << cut;
    ASSERT_EQ(recovered->entries.size(), 1U);
    ASSERT_EQ(recovered->entries[0].result, std::nullopt) << "begun, not done";
  }
}

//= IDM-4
TEST(JournalLog, RecordsThatContradictOneAnotherAreRefused) {
  const JournalLog log{Duration::zero(), kOpened};
  const auto begin = [&](const char* id) {
    return log.encode_begin({id, ""}, digest(id), kOpened + seconds{1});
  };
  const auto complete = [&](const char* id) {
    return log.encode_complete({id, ""}, "r", kOpened + seconds{1});
  };
  const auto forget = [&](const char* id) { return log.encode_forget({id, ""}, kOpened + seconds{1}); };
  const std::vector<std::vector<Bytes>> wrong = {
      {complete("a")},
      {forget("a")},
      {begin("a"), begin("a")},
      {begin("a"), complete("a"), complete("a")},
      {begin("a"), complete("a"), forget("a")},
      {begin("a"), forget("a"), complete("a")},
      {begin("a"), log.encode_clock(kOpened)},  // time runs back
  };
  for (const auto& records : wrong) {
    const auto recovered = recover(join(records));
    ASSERT_FALSE(recovered.has_value());
    const std::size_t last_at = join(records).size() - records.back().size();
    EXPECT_EQ(recovered.error().reason,
              "journal log, byte " + std::to_string(last_at) + ": contradicts the records before it");
  }
  EXPECT_TRUE(recover(begin("a") + forget("a") + begin("a")).has_value());
  EXPECT_TRUE(recover(begin("a") + complete("a") + begin("a")).has_value()) << "it expired in between";
}

TEST(JournalLog, CompactedSaysTheSameInFewerBytes) {
  Journal journal;
  const JournalLog log{Duration::zero(), kOpened};
  Bytes appended;
  for (int i = 0; i < 100; ++i) {
    const Instant now = kOpened + seconds{i};
    const std::string id = std::to_string(i);
    const Message message{{.type = "biz.run", .id = id, .payload = "{}", .corr = "c"}};
    appended += log.encode_begin({id, "c"}, journal.begin(message, now).digest, now);
    if (i % 3 == 0) {
      journal.forget({id, "c"});
      appended += log.encode_forget({id, "c"}, now);
    } else if (i % 3 == 1) {
      ASSERT_TRUE(journal.complete({id, "c"}, id, now).has_value());
      appended += log.encode_complete({id, "c"}, id, now);
    }
  }
  const Instant now = kOpened + seconds{200};
  appended += log.encode_clock(now);
  const Bytes compacted = log.compact(journal, now);
  const auto from_appended = recover(appended);
  const auto from_compacted = recover(compacted);
  ASSERT_TRUE(from_appended.has_value());
  ASSERT_TRUE(from_compacted.has_value());
  EXPECT_EQ(said(from_compacted->entries), said(from_appended->entries));
  EXPECT_EQ(from_compacted->entries, journal.entries(now)) << "ages and order too";
  EXPECT_EQ(from_compacted->run_time, from_appended->run_time);
  EXPECT_LT(compacted.size(), appended.size());
}

TEST(JournalLog, AgesByTheTimeTheJournalRanAcrossRestarts) {
  Bytes file;
  for (int run = 0; run < 4; ++run) {
    const Instant origin{seconds{1'000'000 - run * 1000}};  // each run has a steady clock of its own
    const auto recovered = recover(file);
    ASSERT_TRUE(recovered.has_value());
    EXPECT_EQ(recovered->run_time, seconds{10 * run});
    Journal journal{{.ttl = seconds{25}}};
    journal.restore(recovered->entries, origin);
    const JournalLog log{recovered->run_time, origin};
    if (run == 0) {
      const Message message{{.type = "biz.run", .id = "a", .payload = "{}"}};
      Bytes records = log.encode_begin({"a", ""}, journal.begin(message, origin).digest, origin);
      ASSERT_TRUE(journal.complete({"a", ""}, "done", origin).has_value());
      file += records + log.encode_complete({"a", ""}, "done", origin);
    }
    journal.handle_timeout(origin + seconds{10});
    EXPECT_EQ(journal.size(), run < 2 ? 1U : 0U) << "run " << run << " ends at age " << 10 * (run + 1);
    if (run % 2 == 0) {
      file += log.encode_clock(origin + seconds{10});
    } else {
      file = log.compact(journal, origin + seconds{10});
    }
  }
}

TEST(JournalLog, SurvivesACrashAtAnyByteOfAnyHistory) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random{seed};
    const JournalLog log{Duration::zero(), kOpened};
    Bytes file;
    Said model;
    std::vector<std::pair<std::size_t, Said>> states = {{0, {}}};  // what the file says from that size on
    for (int step = 0; step < 40; ++step) {
      const Instant now = kOpened + milliseconds{step};
      const std::string id(1 + random.below(3), static_cast<char>('a' + random.below(4)));
      const JournalKey key{id, ""};
      const auto known = model.find({id, ""});
      if (known == model.end()) {
        file += log.encode_begin(key, digest(id), now);
        model[{id, ""}] = {digest(id), std::nullopt};
      } else if (known->second.second || random.one_in(3)) {
        if (known->second.second) continue;
        file += log.encode_forget(key, now);
        model.erase(known);
      } else {
        known->second.second = std::string(random.below(60), 'r');
        file += log.encode_complete(key, *known->second.second, now);
      }
      states.emplace_back(file.size(), model);
    }
    std::size_t state = 0;
    for (std::size_t cut = 0; cut <= file.size(); ++cut) {
      while (state + 1 < states.size() && states[state + 1].first <= cut) ++state;
      const auto recovered = recover(BytesView(file).substr(0, cut));
      ASSERT_TRUE(recovered.has_value()) << "seed " << seed << " cut " << cut;
      ASSERT_EQ(recovered->valid_bytes, states[state].first);
      ASSERT_EQ(said(recovered->entries), states[state].second) << "seed " << seed << " cut " << cut;
    }
  }
}

TEST(JournalLog, ANewerVersionIsRefusedAndNotDropped) {
  const JournalLog log{Duration::zero(), kOpened};
  Bytes newer = log.encode_clock(kOpened);
  newer[2] = 2;
  const std::vector<BytesView> parts = {BytesView(newer).substr(0, 8), BytesView(newer).substr(16)};
  const Digest check = sha256_parts(parts);
  newer.replace(8, 8, view_of(check).substr(0, 8));
  const auto recovered = recover(newer);
  ASSERT_FALSE(recovered.has_value());
  EXPECT_EQ(recovered.error().reason, "journal log, byte 0: written by another version");
}

}  // namespace
}  // namespace windlass
