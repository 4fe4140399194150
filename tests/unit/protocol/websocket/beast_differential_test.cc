// The reader against Boost.Beast on generated streams; tests/fuzz/fuzz_websocket.cc does the same without
// end.
#include <gtest/gtest.h>

#include "tests/support/beast_oracle.h"
#include "tests/support/websocket_differential.h"

namespace windlass::support {
namespace {

using websocket::Side;

std::string hex(BytesView bytes) {
  std::string out;
  for (const char byte : bytes.substr(0, 200)) {
    constexpr char kDigits[] = "0123456789abcdef";
    out += kDigits[static_cast<unsigned char>(byte) >> 4U];
    out += kDigits[static_cast<unsigned char>(byte) & 15U];
  }
  return out;
}

TEST(BeastDifferential, SeesTheSameEventsAndRefusalsInSixThousandDamagedStreams) {
  constexpr std::uint64_t kSeed = 20'250'101;
  int refused = 0;
  int events = 0;
  for (std::uint64_t i = 0; i < 6000; ++i) {
    Random random{kSeed + i};
    const Side side = i % 2 == 0 ? Side::Server : Side::Client;
    const Bytes stream = damaged_stream(side, random);
    const auto different = disagreement(side, stream, i);
    ASSERT_EQ(different, std::nullopt) << *different << "\n  seed " << kSeed + i << ", bytes " << hex(stream);
    const Outcome outcome = read_all(side, stream, {.message_bytes_max = 3000});
    refused += outcome.failure ? 1 : 0;
    events += static_cast<int>(outcome.events.size());
  }
  // The generator must keep both kinds coming, or the comparison says little.
  EXPECT_GT(refused, 1500);
  EXPECT_LT(refused, 4500);
  EXPECT_GT(events, 6000);
}

TEST(BeastDifferential, OracleReportsWhatBeastDid) {
  EXPECT_EQ(read_with_beast(Side::Client,
                            "\x81\x02hi\x88\x05\x03\xE9"
                            "bye",
                            100),
            (Outcome{{{Seen::Kind::Text, "hi"}, {Seen::Kind::Close, "bye", 1001}}, {}, ""}));
  EXPECT_EQ(read_with_beast(Side::Client, "\x81\x05hello", 4).failure, 1009);
  EXPECT_EQ(read_with_beast(Side::Client, "\x81\x01\xFF", 100).failure, 1007);
  EXPECT_EQ(read_with_beast(Side::Server, "\x81\x02hi", 100).failure, 1002);
  EXPECT_EQ(read_with_beast(Side::Server,
                            "\x8F\x82"
                            "keyshi",
                            100)
                .failure,
            1002);
}

// Each of the differences listed in websocket_differential.cc is still one: a newer Beast may end it.
TEST(BeastDifferential, DiffersOnlyWhereWeMeanTo) {
  using namespace std::string_literals;
  const Bytes streams[] = {
      "\x88\x03\x03\xE8\xFF"s,                      // 1. close reason is not UTF-8
      "\x88\x02\x13\x88"s,                          // 2. close code 5000
      "\x88\x02\x03\xF6"s,                          // 3. close code 1014
      "\x82\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s,  // 4. length with its top bit set
      "\x01\x01\xC3\x80\x00"s,                      // 5. cut character, then an empty last fragment
      "\x83\x7E"s,                                  // a bad header that has not come whole
  };
  for (const Bytes& stream : streams) {
    EXPECT_NE(read_all(Side::Client, stream), read_with_beast(Side::Client, stream, 3000)) << hex(stream);
    EXPECT_EQ(disagreement(Side::Client, stream, 1), std::nullopt) << hex(stream);
  }
}

}  // namespace
}  // namespace windlass::support
