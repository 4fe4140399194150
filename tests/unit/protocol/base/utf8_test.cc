#include "protocol/base/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "protocol/base/random.h"
#include "protocol/base/utf8_mend.h"

namespace windlass {
namespace {

// The definition, written as slowly as it reads: decode one character, then ask whether it may exist.
bool is_utf8_by_definition(BytesView text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const int size = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
    if (size == 0 || i + static_cast<std::size_t>(size) > text.size()) return false;
    unsigned code = size == 1 ? lead : lead & (0x7FU >> size);
    for (int k = 1; k < size; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + static_cast<std::size_t>(k)]);
      if (byte >> 6 != 2) return false;
      code = code << 6 | (byte & 0x3FU);
    }
    constexpr unsigned kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < kSmallest[size] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return false;
    i += static_cast<std::size_t>(size);
  }
  return true;
}

bool is_utf8_in_two_pieces(BytesView text, std::size_t cut) {
  Utf8Checker checker;
  return checker.handle_bytes(text.substr(0, cut)) && checker.handle_bytes(text.substr(cut)) &&
         checker.is_complete();
}

// How many bytes it takes, one at a time, until the checker says no; -1 if it never does.
int refused_at(BytesView text) {
  Utf8Checker checker;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!checker.handle_bytes(text.substr(i, 1))) return static_cast<int>(i);
  }
  return -1;
}

TEST(Utf8, EveryTwoByteStringWithAnyFollowerMeetsTheDefinition) {
  for (unsigned a = 0; a < 256; ++a) {
    for (unsigned b = 0; b < 256; ++b) {
      const std::string two{static_cast<char>(a), static_cast<char>(b)};
      ASSERT_EQ(is_utf8(two), is_utf8_by_definition(two)) << a << ' ' << b;
      ASSERT_EQ(is_utf8_in_two_pieces(two, 1), is_utf8_by_definition(two)) << a << ' ' << b;
      for (const unsigned c : {0x00U, 0x41U, 0x7FU, 0x80U, 0xA5U, 0xBFU, 0xC0U, 0xC3U, 0xE2U, 0xFFU}) {
        std::string three = two + static_cast<char>(c);
        ASSERT_EQ(is_utf8(three), is_utf8_by_definition(three)) << a << ' ' << b << ' ' << c;
        three += "tail that reaches the wide loop";
        ASSERT_EQ(is_utf8(three), is_utf8_by_definition(three)) << a << ' ' << b << ' ' << c;
      }
    }
  }
}

TEST(Utf8, EveryFourByteLeadMeetsTheDefinitionAtTheBordersOfEachByte) {
  const unsigned borders[] = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF};
  for (unsigned a = 0xE0; a < 256; ++a) {
    for (const unsigned b : borders) {
      for (const unsigned c : borders) {
        for (const unsigned d : borders) {
          const std::string four{static_cast<char>(a), static_cast<char>(b), static_cast<char>(c),
                                 static_cast<char>(d)};
          ASSERT_EQ(is_utf8(four), is_utf8_by_definition(four)) << a << ' ' << b << ' ' << c << ' ' << d;
          for (std::size_t cut = 1; cut < 4; ++cut) {
            ASSERT_EQ(is_utf8_in_two_pieces(four, cut), is_utf8_by_definition(four)) << a << ' ' << b;
          }
        }
      }
    }
  }
}

TEST(Utf8, RefusesAtTheFirstByteThatCannotBeMadeGood) {
  EXPECT_EQ(refused_at("ab\x80"), 2);
  EXPECT_EQ(refused_at("\xC0"), 0);
  EXPECT_EQ(refused_at("\xC1"), 0);
  EXPECT_EQ(refused_at("\xF5"), 0);
  EXPECT_EQ(refused_at("\xE0\x9F"), 1);  // overlong
  EXPECT_EQ(refused_at("\xED\xA0"), 1);  // surrogate
  EXPECT_EQ(refused_at("\xF0\x8F"), 1);  // overlong
  EXPECT_EQ(refused_at("\xF4\x90"), 1);  // above U+10FFFF
  EXPECT_EQ(refused_at("\xE2\x82"
                       "a"),
            2);  // continuation missing
  EXPECT_EQ(refused_at("\xF4\x8F\xBF\xBF"), -1);
}

TEST(Utf8, RefusesAWideStretchOfAsciiInsideACharacter) {
  const std::string words(64, 'w');
  const std::string smile = "\xF0\x9F\x98\x80";
  for (std::size_t cut = 1; cut < smile.size(); ++cut) {
    for (std::size_t lead = 0; lead < 40; ++lead) {
      const std::string begin = words.substr(0, lead) + smile.substr(0, cut);
      const std::string end = smile.substr(cut);
      ASSERT_TRUE(is_utf8(begin + end));
      std::string parted = begin;
      parted.append(words).append(end);
      ASSERT_FALSE(is_utf8(parted)) << lead;
      ASSERT_FALSE(is_utf8_in_two_pieces(parted, begin.size())) << lead;
    }
  }
}

TEST(Utf8, StaysWrongWhateverFollows) {
  Utf8Checker checker;
  EXPECT_FALSE(checker.handle_bytes("\xFF"));
  EXPECT_FALSE(checker.handle_bytes("plain"));
  EXPECT_FALSE(checker.handle_bytes(std::string(100, 'a')));
  EXPECT_FALSE(checker.is_complete());
}

TEST(Utf8, AnyCutGivesTheSameAnswerAsTheWhole) {
  Random random{20240611};
  const std::vector<std::string> parts = {
      "a",           "plain ascii words ", "\xC3\xBC", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xED\x9F\xBF",
      "\xEF\xBF\xBF"};
  for (int round = 0; round < 300; ++round) {
    std::string text;
    while (text.size() < 100) text += parts[random.below(parts.size())];
    if (random.one_in(2)) text[random.below(text.size())] = static_cast<char>(random.next());
    const bool expected = is_utf8_by_definition(text);
    ASSERT_EQ(is_utf8(text), expected) << "round " << round;
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
      ASSERT_EQ(is_utf8_in_two_pieces(text, cut), expected) << "round " << round << " cut " << cut;
    }
  }
}

TEST(Utf8Mend, GoodTextStaysAsItIs) {
  for (const std::string text : {"", "plain", "gr\xC3\xBC\xC3\x9F", "\xF0\x9F\x98\x80"}) {
    EXPECT_EQ(mended_utf8(text), text);
  }
}

TEST(Utf8Mend, EachMaximalBadPartBecomesOneReplacementCharacter) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(mended_utf8("a\xED\xA0\xBD"
                        "b"),
            "a" + bad + bad + bad + "b");  // a surrogate
  EXPECT_EQ(mended_utf8("a\xF0\x9F\x98"
                        "b"),
            "a" + bad + "b");  // cut short
  EXPECT_EQ(mended_utf8("a\xF0\x9F\x98"), "a" + bad);
  EXPECT_EQ(mended_utf8("\xC0\xAF"), bad + bad);  // overlong
  EXPECT_EQ(mended_utf8("\xFF\xC3\xBC"), bad + "\xC3\xBC");
}

TEST(Utf8Mend, WhateverComesInIsUtf8WhenItComesOut) {
  Random random{7};
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (std::uint64_t size = random.below(12); size > 0; --size) {
      text.push_back(static_cast<char>(random.below(2) == 0 ? 0x80 + random.below(128) : random.below(256)));
    }
    EXPECT_TRUE(is_utf8(mended_utf8(text)));
  }
}

}  // namespace
}  // namespace windlass
