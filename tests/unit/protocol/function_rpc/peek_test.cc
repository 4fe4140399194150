#include <gtest/gtest.h>

#include <string>

#include "protocol/base/random.h"
#include "protocol/function_rpc/peek.h"

namespace windlass::function_rpc {
namespace {

std::string with_invocation(Content content, std::uint32_t field, std::string_view id) {
  std::string body;
  append_bytes(body, field, id);
  append_bytes(body, 15, "rest");
  return compose("request", content, body);
}

TEST(Peek, FindsTheInvocationOfWhatBelongsToOne) {
  EXPECT_EQ(peek(with_invocation(Content::RpcLog, 1, "a"))->invocation_id, "a");
  EXPECT_EQ(peek(with_invocation(Content::InvocationRequest, 1, "b"))->invocation_id, "b");
  EXPECT_EQ(peek(with_invocation(Content::InvocationCancel, 2, "c"))->invocation_id, "c");
  EXPECT_EQ(peek(with_invocation(Content::StartStream, 1, "d"))->invocation_id, "");
}

TEST(Peek, ReadsNothingOfAnEmptyMessage) {
  const Result<Peeked> peeked = peek("");
  ASSERT_TRUE(peeked);
  EXPECT_EQ(peeked->content, Content::None);
}

TEST(Peek, TakesNoOtherFieldForTheContent) {
  std::string message = with_invocation(Content::InvocationResponse, 1, "id");
  append_bytes(message, 3, "never used");
  append_bytes(message, 999, "of a later day");
  const Result<Peeked> peeked = peek(message);
  ASSERT_TRUE(peeked);
  EXPECT_EQ(peeked->content, Content::InvocationResponse);
  EXPECT_EQ(peeked->invocation_id, "id");
}

TEST(Peek, RefusesWhatIsCutAnywhereInsideAField) {
  const std::string whole = with_invocation(Content::InvocationResponse, 1, "id");
  const std::size_t request_end = 2 + std::string_view{"request"}.size();
  for (std::size_t size = 1; size < whole.size(); ++size) {
    if (size == request_end) continue;  // between two fields
    EXPECT_FALSE(peek(std::string_view{whole}.substr(0, size))) << size;
  }
}

TEST(Peek, RefusesFieldZeroGroupsAndEndlessVarints) {
  EXPECT_FALSE(peek(std::string_view{"\x02\x00", 2}));
  EXPECT_FALSE(peek("\x0b"));
  EXPECT_FALSE(peek(std::string(11, '\xff')));
}

TEST(Peek, SurvivesAnyBytes) {
  Random random{20261116};
  std::size_t refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes(random.below(40), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.below(256));
    if (!peek(bytes)) ++refused;
  }
  EXPECT_GT(refused, 0U);
}

}  // namespace
}  // namespace windlass::function_rpc
