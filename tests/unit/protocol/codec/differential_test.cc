// Our validator and a general one must say the same of every message. Seeded edits of the valid vectors reach
// the edges of every rule; a disagreement prints the message and its seed.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/error_code.h"
#include "protocol/base/random.h"
#include "protocol/codec/decode.h"
#include "protocol/codec/encode.h"
#include "tests/support/examples.h"
#include "tests/support/frame_mutator.h"
#include "tests/support/schema_oracle.h"

namespace windlass {
namespace {

using support::Example;

constexpr std::uint64_t kMutations = 60'000;
constexpr std::size_t kLengthBytes = 4;

std::string_view envelope_of(const Example& example) {
  const std::string_view message = example.message;
  if (example.kind == MessageKind::Text) return message;
  return message.substr(kLengthBytes, message.rfind('}') + 1 - kLengthBytes);
}

std::string as_binary(const std::string& envelope, std::string_view attachment) {
  std::string message;
  for (const unsigned shift : {24U, 16U, 8U, 0U}) message += static_cast<char>(envelope.size() >> shift);
  return message.append(envelope).append(attachment);
}

TEST(Differential, EveryVerdictOnEditedFramesIsTheSchemaValidators) {
  //= ENV-2
  const std::vector<Example> examples = support::valid_examples();
  support::SchemaOracle oracle;
  Decoder decoder;
  std::uint64_t accepted = 0;
  for (std::uint64_t seed = 0; seed < kMutations; ++seed) {
    Random random{seed};
    const Example& example = examples[random.below(examples.size())];
    std::string message = support::mutated_frame(envelope_of(example), random);
    MessageKind kind = MessageKind::Text;
    if (example.kind == MessageKind::Binary || random.one_in(32)) {
      kind = MessageKind::Binary;
      message = as_binary(message, std::string_view{"bytes!"}.substr(random.below(3)));
    }
    constexpr std::array kExpects = {Expect::RevisionOne, Expect::RevisionTwo, Expect::Any};
    const Expect expect =
        random.one_in(3) ? kExpects[random.below(kExpects.size())] : support::expect_of(example.revision);
    const Frame* frame = decoder.decode(message, kind, expect);
    accepted += frame != nullptr ? 1 : 0;
    const auto refusal = frame != nullptr ? std::nullopt : std::optional<ErrorCode>{decoder.violation().code};
    ASSERT_EQ(refusal, oracle.refusal(message, kind, expect))
        << "seed " << seed << " from " << example.name << ", decode says "
        << (frame != nullptr ? "yes" : decoder.violation().pointer + " " + decoder.violation().reason) << "\n"
        << message;
  }
  // Both answers must be common, or the edits prove little.
  EXPECT_GT(accepted, kMutations / 10);
  EXPECT_LT(accepted, kMutations * 9 / 10);
  RecordProperty("accepted", static_cast<int>(accepted));
}

// Who reads a message with other tools than ours must come to the same verdict where those tools are known to
// differ: strings with NUL inside, and numbers at the edges of a double's range.
class Agreement : public ::testing::Test {
 protected:
  // The code both refuse the message with; empty: both take it.
  std::string verdict(std::string_view payload, std::string_view more = R"("seq":1)") {
    std::string message = R"({"type":"biz.x","id":"f","ts":"2026-11-16T08:00:00Z","tenant":"a",)";
    message.append(R"("sender":{"role":"worker","id":"w"},)").append(more);
    message.append(R"(,"payload":)").append(payload).append("}");
    const Frame* frame = decoder_.decode(message, MessageKind::Text, Expect::RevisionTwo);
    const std::optional<ErrorCode> refusal = oracle_.refusal(message, MessageKind::Text, Expect::RevisionTwo);
    EXPECT_EQ(frame == nullptr, refusal.has_value()) << message;
    if (frame != nullptr || !refusal) return {};
    EXPECT_EQ(to_string(decoder_.violation().code), to_string(*refusal)) << message;
    return std::string{to_string(*refusal)};
  }
  std::string verdict_on_number(std::string_view number) {
    return verdict(std::string{R"({"a":)"}.append(number).append("}"));
  }

  support::SchemaOracle oracle_;
  Decoder decoder_;
};

TEST_F(Agreement, NulIsACharacterLikeAnyOther) {
  const auto flag = [&](std::string_view text) {
    return verdict("{}", std::string{R"("seq":1,"flags":[")"}.append(text).append("\"]"));
  };
  const auto repeated = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += "\\u0000";
    return text;
  };
  //= ENV-13
  EXPECT_EQ(flag(""), "E.PROTO.SCHEMA");
  EXPECT_EQ(flag(repeated(1)), "");
  EXPECT_EQ(flag(repeated(64)), "");
  EXPECT_EQ(flag(repeated(65)), "E.PROTO.SCHEMA");
  //= ENV-5
  EXPECT_EQ(verdict("{}", R"("seq":1,"corr":"a\u0000")"), "E.PROTO.SCHEMA");
  //= ENV-1
  EXPECT_EQ(verdict("{}", R"("seq":1,"corr\u0000":"a")"), "E.PROTO.SCHEMA");
  EXPECT_EQ(verdict(R"({"\u0000":"\u0000"})"), "");
}

TEST_F(Agreement, ANumberIsRefusedIfTheNearestDoubleIsInfinite) {
  //= ENV-10
  for (const std::string_view number :
       {"0e309", "0.0e400", "-0e9999999999", "0E+400", "1e-400", "-1e-9999999999", "1e308", "10e307",
        "0.01e310", "1.7976931348623157e308", "1.7976931348623158e308", "-1.7976931348623158e308", "5e-324",
        "2e-324", "18446744073709551616.0"}) {
    EXPECT_EQ(verdict_on_number(number), "") << number;
  }
  for (const std::string_view number : {"1e309", "10e308", "-10e308", "0.01e311", "1.7976931348623159e308",
                                        "-1.7976931348623159e308", "1e9999999999", "18446744073709551616"}) {
    EXPECT_EQ(verdict_on_number(number), "E.PROTO.JSON") << number;
  }
}

TEST_F(Agreement, ANumberWithAnotherSpellingIsNoInteger) {
  //= ENV-7
  for (const std::string_view number : {"1.0", "1e0", "1E2", "0e400", "-0.0", "9007199254740993"}) {
    EXPECT_EQ(verdict("{}", std::string{R"("seq":)"}.append(number)), "E.PROTO.SCHEMA") << number;
  }
  EXPECT_EQ(verdict("{}", R"("seq":-0)"), "");
}

TEST(Differential, WhatIsAcceptedEncodesToAFrameThatIsAccepted) {
  const std::vector<Example> examples = support::valid_examples();
  Decoder decoder;
  for (std::uint64_t seed = 0; seed < kMutations; ++seed) {
    Random random{seed};
    const Example& example = examples[random.below(examples.size())];
    if (example.kind == MessageKind::Binary) continue;
    const std::string message = support::mutated_frame(example.message, random);
    const Frame* frame = decoder.decode(message, MessageKind::Text, support::expect_of(example.revision));
    if (frame == nullptr) continue;
    std::string once;
    encode(*frame, example.revision, once);
    const Frame* again = decoder.decode(once, MessageKind::Text, support::expect_of(example.revision));
    ASSERT_NE(again, nullptr) << "seed " << seed << "\n" << message << "\n" << once;
    std::string twice;
    encode(*again, example.revision, twice);
    ASSERT_EQ(once, twice) << "seed " << seed;
  }
}

}  // namespace
}  // namespace windlass
