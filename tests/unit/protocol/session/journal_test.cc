#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "protocol/base/random.h"
#include "protocol/session/journal.h"

namespace windlass {
namespace {

constexpr Instant kStart{seconds{1000}};

Message run_message(std::string_view id, std::string_view payload = "{}", std::string_view corr = "") {
  return Message{{.type = "biz.run", .id = id, .payload = payload, .corr = corr}};
}

Message with_attachment(std::string_view type, std::string_view bytes) {
  return Message{{.type = "biz.run", .id = "a", .payload = "{}", .attachment = Attachment{type, bytes}}};
}

void complete(Journal& journal, JournalKey key, BytesView result, Instant now) {
  ASSERT_TRUE(journal.complete(key, result, now).has_value());
}

//= IDM-1
TEST(Journal, AnswersARepeatedMessageWithTheStoredResult) {
  Journal journal;
  EXPECT_EQ(journal.begin(run_message("a"), kStart).verdict, JournalVerdict::New);
  EXPECT_EQ(journal.begin(run_message("a"), kStart).verdict, JournalVerdict::InProgress);
  complete(journal, {"a", ""}, "the result", kStart);
  const JournalAnswer again = journal.begin(run_message("a"), kStart + seconds{1});
  EXPECT_EQ(again.verdict, JournalVerdict::Done);
  EXPECT_EQ(again.result, "the result");
  EXPECT_EQ(refusal_code(again.verdict), std::nullopt);
}

//= IDM-1
TEST(Journal, TellsAnEmptyResultFromNone) {
  Journal journal;
  journal.begin(run_message("a"), kStart);
  complete(journal, {"a", ""}, "", kStart);
  EXPECT_EQ(journal.begin(run_message("a"), kStart).verdict, JournalVerdict::Done);
}

//= IDM-1
TEST(Journal, KeysByIdAndCorrTogether) {
  Journal journal;
  EXPECT_EQ(journal.begin(run_message("a", "{}", "x"), kStart).verdict, JournalVerdict::New);
  EXPECT_EQ(journal.begin(run_message("a", "{}", "y"), kStart).verdict, JournalVerdict::New);
  EXPECT_EQ(journal.begin(run_message("a"), kStart).verdict, JournalVerdict::New);
  EXPECT_EQ(journal.begin(run_message("ax"), kStart).verdict, JournalVerdict::New);
  EXPECT_EQ(journal.begin(run_message("a", "{}", "x"), kStart).verdict, JournalVerdict::InProgress);
  EXPECT_EQ(journal.size(), 4U);
}

//= IDM-2
TEST(Journal, RefusesAKnownKeyWithAnotherContentWhetherDoneOrNot) {
  Journal journal;
  journal.begin(run_message("a", R"({"n":1})"), kStart);
  EXPECT_EQ(journal.begin(run_message("a", R"({"n":2})"), kStart).verdict, JournalVerdict::Conflict);
  complete(journal, {"a", ""}, "one", kStart);
  EXPECT_EQ(journal.begin(run_message("a", R"({"n":2})"), kStart).verdict, JournalVerdict::Conflict);
  EXPECT_EQ(journal.begin(run_message("a", R"({"n":1})"), kStart).result, "one")
      << "the first content still counts";
  EXPECT_EQ(refusal_code(JournalVerdict::Conflict), ErrorCode::ResultDuplicate);
}

//= IDM-2
TEST(Journal, ContentIsTypePayloadAndAttachmentAndNothingElse) {
  const Digest plain = content_digest(run_message("a"));
  EXPECT_EQ(content_digest(run_message("b", "{}", "c")), plain) << "the key is no content";
  EXPECT_EQ(content_digest(Message{{.type = "biz.run", .id = "a", .payload = "{}", .ack_request = true}}),
            plain);
  const std::map<Digest, std::string> distinct = {
      {plain, "plain"},
      {content_digest(run_message("a", "{ }")), "payload"},
      {content_digest(Message{{.type = "biz.ru", .id = "a", .payload = "n{}"}}), "type"},
      {content_digest(with_attachment("", "")), "empty attachment"},
      {content_digest(with_attachment("t", "")), "attachment type"},
      {content_digest(with_attachment("", "t")), "attachment bytes"},
      {content_digest(with_attachment("t", "t")), "both"},
  };
  EXPECT_EQ(distinct.size(), 7U);
}

//= IDM-3
TEST(Journal, KeepsACompletedEntryForItsWholeTtlAndNoLonger) {
  Journal journal{{.ttl = seconds{10}}};
  journal.begin(run_message("a"), kStart);
  EXPECT_EQ(journal.poll_timeout(), std::nullopt);
  complete(journal, {"a", ""}, "r", kStart + seconds{5});
  EXPECT_EQ(journal.poll_timeout(), kStart + seconds{15});
  journal.handle_timeout(kStart + seconds{15} - Duration{1});
  EXPECT_EQ(journal.size(), 1U);
  journal.handle_timeout(kStart + seconds{15});
  EXPECT_EQ(journal.size(), 0U);
  EXPECT_EQ(journal.bytes(), 0U);
  EXPECT_EQ(journal.poll_timeout(), std::nullopt);
}

//= IDM-3
TEST(Journal, NeverForgetsWhatIsInProgress) {
  Journal journal{{.ttl = seconds{10}}};
  journal.begin(run_message("a"), kStart);
  journal.handle_timeout(kStart + seconds{1'000'000});
  EXPECT_EQ(journal.begin(run_message("a"), kStart + seconds{1'000'000}).verdict, JournalVerdict::InProgress);
}

//= IDM-3
TEST(Journal, FullOfYoungEntriesRefusesNewWorkAndForgetsNothing) {
  Journal journal{{.entries_max = 2, .ttl = seconds{10}}};
  for (const char* id : {"a", "b"}) {
    journal.begin(run_message(id), kStart);
    complete(journal, {id, ""}, id, kStart);
  }
  const Instant young = kStart + seconds{9};
  EXPECT_EQ(journal.begin(run_message("c"), young).verdict, JournalVerdict::Full);
  EXPECT_EQ(refusal_code(JournalVerdict::Full), ErrorCode::LimitCapacity);
  EXPECT_EQ(journal.begin(run_message("a"), young).result, "a") << "known work is answered even so";
  EXPECT_EQ(journal.begin(run_message("b"), young).result, "b");
  EXPECT_EQ(journal.begin(run_message("c"), kStart + seconds{10}).verdict, JournalVerdict::New)
      << "there is room again";
}

//= IDM-3
TEST(Journal, BoundsItsBytesWithRoomReservedForResultsToCome) {
  Journal journal{{.bytes_max = 10'000, .result_bytes_reserved = 1'000}};
  int begun = 0;
  while (journal.begin(run_message(std::to_string(begun)), kStart).verdict == JournalVerdict::New) ++begun;
  EXPECT_GT(begun, 5);
  EXPECT_LE(journal.bytes(), 10'000U);
  const std::string large(5'000, 'x');
  const auto refused = journal.complete({"0", ""}, large, kStart);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::LimitCapacity);
  EXPECT_EQ(journal.begin(run_message("0"), kStart).verdict, JournalVerdict::InProgress);
  for (int i = 0; i < begun; ++i) {
    complete(journal, {std::to_string(i), ""}, large.substr(0, 1'000), kStart);
  }
  EXPECT_LE(journal.bytes(), 10'000U);
}

TEST(Journal, TakesAResultLargerThanReservedWhereThereIsRoom) {
  Journal journal{{.bytes_max = 10'000, .result_bytes_reserved = 10}};
  journal.begin(run_message("a"), kStart);
  complete(journal, {"a", ""}, std::string(9'000, 'x'), kStart);
  EXPECT_EQ(journal.begin(run_message("a"), kStart).result.size(), 9'000U);
  EXPECT_EQ(journal.begin(run_message("b", "{}", std::string(1'000, 'c')), kStart).verdict,
            JournalVerdict::Full);
}

TEST(Journal, ForgetsWorkThatWasRefusedBeforeItTookEffect) {
  Journal journal;
  journal.begin(run_message("a", "1"), kStart);
  journal.forget({"a", ""});
  EXPECT_EQ(journal.bytes(), 0U);
  EXPECT_EQ(journal.begin(run_message("a", "2"), kStart).verdict, JournalVerdict::New);
}

TEST(JournalDeathTest, CompletingOrForgettingWhatIsNotInProgressIsOurMistake) {
  Journal journal;
  journal.begin(run_message("a"), kStart);
  complete(journal, {"a", ""}, "r", kStart);
  EXPECT_DEATH((void)journal.complete({"a", ""}, "r", kStart), "CHECK failed");
  EXPECT_DEATH((void)journal.complete({"b", ""}, "r", kStart), "CHECK failed");
  EXPECT_DEATH(journal.forget({"a", ""}), "CHECK failed");
}

TEST(Journal, RestoredRemembersResultsAndTheirAge) {
  Journal before{{.ttl = seconds{10}}};
  for (const char* id : {"a", "b", "c", "d"}) before.begin(run_message(id), kStart);
  complete(before, {"b", ""}, "rb", kStart + seconds{1});
  complete(before, {"a", ""}, "ra", kStart + seconds{3});
  const auto entries = before.entries(kStart + seconds{4});
  ASSERT_EQ(entries.size(), 4U);
  EXPECT_EQ(entries[0].key.id, "b");
  EXPECT_EQ(entries[0].age, seconds{3});
  EXPECT_EQ(entries[1].key.id, "a");
  EXPECT_EQ(entries[2].key.id, "c");
  EXPECT_EQ(entries[3].key.id, "d");

  constexpr Instant kLater{seconds{7}};  // another run, another origin of time
  Journal after{{.ttl = seconds{10}}};
  after.restore(entries, kLater);
  EXPECT_EQ(after.entries(kLater), entries);
  EXPECT_EQ(after.bytes(), before.bytes());
  EXPECT_EQ(after.poll_timeout(), kLater + seconds{7});
  EXPECT_EQ(after.begin(run_message("a"), kLater).result, "ra");
  EXPECT_EQ(after.begin(run_message("c"), kLater).verdict, JournalVerdict::InProgress);
  complete(after, {"c", ""}, "interrupted", kLater);
  after.handle_timeout(kLater + seconds{7});
  EXPECT_EQ(after.size(), 3U);
}

TEST(Journal, RestoredBeyondItsBoundsForgetsNothingAndTakesNothing) {
  Journal before;
  for (int i = 0; i < 5; ++i) before.begin(run_message(std::to_string(i)), kStart);
  Journal after{{.entries_max = 3}};
  after.restore(before.entries(kStart), kStart);
  EXPECT_EQ(after.size(), 5U);
  EXPECT_EQ(after.begin(run_message("new"), kStart).verdict, JournalVerdict::Full);
}

// The obvious journal: everything in a map, looked through from end to end.
struct Model {
  struct Entry {
    std::string payload;
    std::optional<std::string> result;
    Instant at{};
  };
  std::map<std::string, Entry> entries;
  Duration ttl;
  std::size_t entries_max;

  void expire(Instant now) {
    std::erase_if(entries, [&](const auto& e) { return e.second.result && now - e.second.at >= ttl; });
  }
  JournalVerdict begin(const std::string& id, const std::string& payload, Instant now) {
    expire(now);
    const auto known = entries.find(id);
    if (known == entries.end()) {
      if (entries.size() >= entries_max) return JournalVerdict::Full;
      entries[id] = {payload, std::nullopt, now};
      return JournalVerdict::New;
    }
    if (known->second.payload != payload) return JournalVerdict::Conflict;
    return known->second.result ? JournalVerdict::Done : JournalVerdict::InProgress;
  }
};

TEST(Journal, BehavesLikeTheObviousOneOverRandomCalls) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random{seed};
    const std::size_t entries_max = 1 + random.below(12);
    Journal journal{{.entries_max = entries_max, .ttl = seconds{20}}};
    Model model{.entries = {}, .ttl = seconds{20}, .entries_max = entries_max};
    Instant now = kStart;
    for (int step = 0; step < 2000; ++step) {
      now += random.below(Duration{seconds{3}});
      const std::string id = std::to_string(random.below(16));
      const std::string payload = std::to_string(random.below(2));
      const auto known = model.entries.find(id);
      const bool is_in_progress = known != model.entries.end() && !known->second.result;
      if (is_in_progress && random.one_in(2)) {
        known->second.result = std::to_string(step);
        known->second.at = now;
        complete(journal, {id, ""}, *known->second.result, now);
        model.expire(now);
      } else if (is_in_progress && random.one_in(8)) {
        journal.forget({id, ""});
        model.entries.erase(known);
      } else {
        const JournalVerdict expected = model.begin(id, payload, now);
        const JournalAnswer answer = journal.begin(run_message(id, payload), now);
        ASSERT_EQ(answer.verdict, expected) << "seed " << seed << " step " << step;
        if (expected == JournalVerdict::Done) {
          ASSERT_EQ(answer.result, *model.entries[id].result);
        }
      }
      ASSERT_EQ(journal.size(), model.entries.size()) << "seed " << seed << " step " << step;
    }
  }
}

}  // namespace
}  // namespace windlass
