// Our validator and a general one must say the same of every message. Seeded edits of the valid vectors reach
// the edges of every rule; a disagreement prints the message and its seed.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

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
    ASSERT_EQ(frame != nullptr, oracle.accepts(message, kind, expect))
        << "seed " << seed << " from " << example.name << ", decode says "
        << (frame != nullptr ? "yes" : decoder.violation().pointer + " " + decoder.violation().reason) << "\n"
        << message;
  }
  // Both answers must be common, or the edits prove little.
  EXPECT_GT(accepted, kMutations / 10);
  EXPECT_LT(accepted, kMutations * 9 / 10);
  RecordProperty("accepted", static_cast<int>(accepted));
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
