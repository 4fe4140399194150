// The golden vectors of schema/examples: each valid one decodes, each invalid one is refused with the code
// and the pointer it names, and the schema validator beside us agrees.
#include <gtest/gtest.h>

#include <map>
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

TEST(GoldenVectors, InvalidOnesAreRefusedWithTheCodeAndThePointerOfTheirRule) {
  //= ENV-1, ENV-2, ENV-10
  Decoder decoder;
  for (const Example& example : support::invalid_examples()) {
    ASSERT_FALSE(example.rule.empty()) << example.name;
    EXPECT_EQ(decoder.decode(example.message, example.kind, expect_of(example.revision)), nullptr)
        << example.name << " should break: " << example.rule;
    EXPECT_EQ(to_string(decoder.violation().code), example.code)
        << example.name << ": " << decoder.violation().reason;
    EXPECT_EQ(decoder.violation().pointer, example.pointer) << example.name;
    EXPECT_FALSE(decoder.violation().reason.empty()) << example.name;
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
