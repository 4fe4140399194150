// The golden vectors of schema/examples: each valid one decodes, each invalid one is refused with the code
// and the pointer it names, for the keyword it breaks, and the schema validator beside us agrees.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <string>

#include "protocol/base/error_code.h"
#include "protocol/codec/decode.h"
#include "protocol/codec/encode.h"
#include "tests/support/examples.h"
#include "tests/support/schema_oracle.h"

namespace windlass {
namespace {

using support::Example;
using support::expect_of;

// What the decoder says of a value that breaks a keyword; of texts that are no JSON the parser speaks.
bool is_reason_for(const std::string& keyword, const std::string& reason) {
  static const std::multimap<std::string, std::string> reasons = {
      {"type", "must be (a|an) .*"},
      {"type", "must (not be|be absent or) null here"},
      {"required", "is required( here)?"},
      {"additionalProperties", "is not a field of this object"},
      {"enum", "must be one of .*"},
      {"minimum", "must be (from [0-9]+ to|at least) [0-9]+"},
      {"maximum", "must be from [0-9]+ to [0-9]+"},
      {"minLength", "must have [1-9][0-9]* to [0-9]+ characters"},
      {"maxLength", "must have [0-9]+ to [0-9]+ characters"},
      {"pattern", "must match .*"},
      {"minItems", "must have at least [0-9]+ item.*"},
      {"maxItems", "must have at most [0-9]+ items"},
      {"maxProperties", "must have at most [0-9]+ members"},
      {"false", "must be absent here"},
      {"twice", "occurs twice"},
      {"attachment", "is required in a binary message"},
      {"attachment", "travels in a binary message only"},
      {"attachment", "must equal the number of bytes behind the envelope"},
      {"binary", "revision 1 has no binary messages"},
      {"length", "ends before the envelope that its first 4 bytes announce"},
      {"syntax", "(The JSON document has an improper structure|Empty|Within strings).*"},
      {"utf-8", "The input is not valid UTF-8"},
      {"surrogate", "Problem while parsing a string"},
      {"number", "Problem while parsing a number"},
      {"depth", "The JSON document was too deep.*"},
  };
  const auto [first, last] = reasons.equal_range(keyword);
  return std::any_of(first, last,
                     [&](const auto& entry) { return std::regex_match(reason, std::regex{entry.second}); });
}

TEST(GoldenVectors, ValidOnesDecode) {
  //= ENV-1
  Decoder decoder;
  for (const Example& example : support::valid_examples()) {
    const Frame* frame = decoder.decode(example.message, example.kind, expect_of(example.revision));
    ASSERT_NE(frame, nullptr) << example.name << ": " << decoder.violation().pointer << " "
                              << decoder.violation().reason;
    EXPECT_EQ(frame->revision, example.revision);
  }
}

TEST(GoldenVectors, InvalidOnesAreRefusedForTheirRuleWithItsCodeAndPointer) {
  //= ENV-1, ENV-2, ENV-10
  Decoder decoder;
  for (const Example& example : support::invalid_examples()) {
    ASSERT_FALSE(example.rule.empty()) << example.name;
    EXPECT_EQ(decoder.decode(example.message, example.kind, expect_of(example.revision)), nullptr)
        << example.name << " should break: " << example.rule;
    EXPECT_EQ(to_string(decoder.violation().code), example.code)
        << example.name << ": " << decoder.violation().reason;
    EXPECT_EQ(decoder.violation().pointer, example.pointer) << example.name;
    EXPECT_TRUE(is_reason_for(example.keyword, decoder.violation().reason))
        << example.name << " should break " << example.keyword << ": " << decoder.violation().reason;
  }
}

TEST(GoldenVectors, TheOracleAgrees) {
  support::SchemaOracle oracle;
  for (const Example& example : support::valid_examples()) {
    EXPECT_TRUE(oracle.accepts(example.message, example.kind, expect_of(example.revision))) << example.name;
  }
  for (const Example& example : support::invalid_examples()) {
    EXPECT_FALSE(oracle.accepts(example.message, example.kind, expect_of(example.revision))) << example.name;
  }
}

TEST(GoldenVectors, EverySchemaHasThreeValidAndTenInvalidOnes) {
  std::map<std::string, int> valid;
  std::map<std::string, int> invalid;
  for (const Example& example : support::valid_examples()) ++valid[example.schema];
  for (const Example& example : support::invalid_examples()) ++invalid[example.schema];
  EXPECT_EQ(valid.size(), 18U);
  EXPECT_EQ(invalid.size(), 18U);
  for (const auto& [schema, count] : valid) EXPECT_GE(count, 3) << schema;
  for (const auto& [schema, count] : invalid) EXPECT_GE(count, 10) << schema;
}

TEST(GoldenVectors, EncodingADecodedFrameDecodesToTheSameBytesAgain) {
  Decoder decoder;
  for (const Example& example : support::valid_examples()) {
    const Frame* frame = decoder.decode(example.message, example.kind, expect_of(example.revision));
    ASSERT_NE(frame, nullptr) << example.name;
    if (std::holds_alternative<UnknownControl>(frame->body)) continue;  // its payload is not kept
    std::string once;
    const MessageKind kind = encode(*frame, example.revision, once);
    EXPECT_EQ(kind, example.kind);
    const Frame* again = decoder.decode(once, kind, expect_of(example.revision));
    ASSERT_NE(again, nullptr) << example.name << ": " << decoder.violation().pointer << " " << once;
    std::string twice;
    encode(*again, example.revision, twice);
    EXPECT_EQ(once, twice) << example.name;
  }
}

}  // namespace
}  // namespace windlass
