#include "worker-agent/core/runtime_choice.h"

#include <gtest/gtest.h>

namespace windlass::agent {
namespace {

TEST(RuntimeChoice, InClearTextIsRefusedWhereTheSchedulerIsReachedByTls) {
  for (const char* url : {"ws://127.0.0.1:1", "http://runtime:1", "WSS://runtime:1", ""}) {
    EXPECT_FALSE(check_runtime_choice(url, "wss://own:1", true)) << url;
    EXPECT_TRUE(check_runtime_choice(url, "", false)) << url;
  }
  EXPECT_TRUE(check_runtime_choice("wss://runtime:1", "", true));
  EXPECT_TRUE(check_runtime_choice("https://runtime:1", "", true));
}

TEST(RuntimeChoice, OfItsOwnSettingsIsTaken) {
  EXPECT_TRUE(check_runtime_choice("ws://127.0.0.1:1", "ws://127.0.0.1:1", true));
  EXPECT_FALSE(check_runtime_choice("ws://127.0.0.1:2", "ws://127.0.0.1:1", true));
}

}  // namespace
}  // namespace windlass::agent
