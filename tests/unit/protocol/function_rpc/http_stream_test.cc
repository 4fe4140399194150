#include "protocol/function_rpc/http_stream.h"

#include <gtest/gtest.h>

#include "protocol/function_rpc/peek.h"

namespace windlass::function_rpc {
namespace {

TEST(HttpStream, IsReadAsItWasWritten) {
  HttpStreamHead head{.method = "POST", .target = "/a?b", .status = 0, .headers = {{"x", "1"}, {"x", ""}}};
  head.has_body = true;
  head.body_bytes = 0;
  const std::string message = write_http_stream({.invocation_id = "i-1",
                                                 .credit = 70000,
                                                 .head = head,
                                                 .data = std::string_view{"\0z", 2},
                                                 .is_end = true,
                                                 .abort = ""});
  const auto peeked = peek(message);
  ASSERT_TRUE(peeked);
  EXPECT_EQ(peeked->content, Content::HttpStream);
  EXPECT_EQ(peeked->invocation_id, "i-1") << "it goes in its invocation's lane";
  const auto frame = read_http_stream(peeked->body);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->head, head);
  EXPECT_EQ(frame->credit, 70000U);
  EXPECT_EQ(frame->data, (std::string_view{"\0z", 2}));
  EXPECT_TRUE(frame->is_end);
  EXPECT_EQ(frame->abort, "");
}

TEST(HttpStream, RefusesWhatIsNone) {
  EXPECT_FALSE(read_http_stream("\x0a"));
  EXPECT_FALSE(read_http_stream(""));
}

TEST(HttpStreamCredit, IsNeverMoreThanTheWindow) {
  HttpStreamCredit credit{100};
  credit.spend(60);
  EXPECT_EQ(credit.left(), 40U);
  EXPECT_FALSE(credit.grow(61));
  EXPECT_TRUE(credit.grow(60));
  EXPECT_EQ(credit.left(), 100U);
}

}  // namespace
}  // namespace windlass::function_rpc
