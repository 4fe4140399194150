#include "worker-agent/native/arguments.h"

#include <gtest/gtest.h>

#include <vector>

namespace windlass::native {
namespace {

Result<Arguments> parsed(std::vector<const char*> arguments) {
  return parse_arguments(arguments);
}

TEST(NativeArguments, TakeEitherSetAndPreferTheNewer) {
  const auto newer = parsed({"--functions-uri", "http://[::1]:50/x", "--functions-worker-id=a",
                             "--functions-request-id", "b", "--functions-grpc-max-message-length", "9"});
  ASSERT_TRUE(newer.has_value());
  EXPECT_EQ(newer->target, "[::1]:50");
  EXPECT_EQ(newer->worker_id, "a");
  EXPECT_EQ(newer->message_bytes_max, 9);
  const auto older = parsed({"--host", "::1", "--port", "50", "--workerId", "c", "--requestId", "d",
                             "--grpcMaxMessageLength", "99999999999", "--unknown", "value",
                             "--functions-worker-id", "newer", "--threads", "3"});
  ASSERT_TRUE(older.has_value());
  EXPECT_EQ(older->target, "[::1]:50");
  EXPECT_EQ(older->worker_id, "newer");
  EXPECT_EQ(older->message_bytes_max, 2147483647);
  EXPECT_EQ(older->threads, 3U);
}

TEST(NativeArguments, NameWhatIsMissingOrWrong) {
  EXPECT_NE(parsed({}).error().reason.find("--functions-uri"), std::string::npos);
  EXPECT_NE(parsed({"--functions-uri", "127.0.0.1:5"}).error().reason.find("no scheme"), std::string::npos);
  EXPECT_NE(parsed({"--host", "h", "--port", "70000"}).error().reason.find("--port"), std::string::npos);
  EXPECT_NE(parsed({"--host", "h", "--port", "7"}).error().reason.find("worker's id"), std::string::npos);
}

}  // namespace
}  // namespace windlass::native
