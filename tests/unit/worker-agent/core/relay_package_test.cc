// The package of the language worker's application: how long it is waited for, and when it is compared.
#include <gtest/gtest.h>

#include "tests/unit/worker-agent/core/relay_fixture.h"

namespace windlass::agent {
namespace {

using function_rpc::Content;

class RelayPackageTest : public RelayTest {};

TEST_F(RelayPackageTest, APackageThatTricklesInIsWaitedForUntilItStalls) {
  bring_up();
  specialize();
  for (int part = 0; part < 60; ++part) {
    pass(seconds{60});
    relay.handle_package_progress("d", now);
  }
  EXPECT_FALSE(take<CommandDone>()) << "an hour, but it comes";
  pass(seconds{100});
  relay.handle_package_progress("another", now);
  pass(seconds{81});
  const auto done = take<CommandDone>();
  ASSERT_TRUE(done);
  EXPECT_NE(done->result.find("while its package was fetched"), std::string::npos) << done->result;
}

TEST_F(RelayPackageTest, WhatFollowsASlowPackageHasItsFullTime) {
  bring_up();
  specialize();
  pass(seconds{170});
  relay.handle_package("d", "/apps/d", now);
  relay.handle_reload_answer(true, {}, "reload", now);
  pass(seconds{170});
  relay.handle_specialized_answer(true, {}, now);
  EXPECT_TRUE(take<CommandDone>()->result.starts_with(R"({"ok":true)"));
}

class RelayStepTimesTest : public RelayTest {
 protected:
  RelayStepTimesTest()
      : RelayTest({.instance_id = "a",
                   .language = "fake",
                   .fetch_stall_max = seconds{10},
                   .unpack_timeout = seconds{100},
                   .specialize_timeout = seconds{1000}}) {}
};

TEST_F(RelayStepTimesTest, UnpackingHasATimeOfItsOwn) {
  bring_up();
  specialize();
  pass(seconds{9});
  relay.handle_package_here("d", now);
  pass(seconds{99});
  EXPECT_FALSE(take<CommandDone>());
  pass(seconds{1});
  EXPECT_NE(take<CommandDone>()->result.find("unpacked or compared"), std::string::npos);
  // One that was changed is fetched anew, and then nothing of it comes.
  specialize("c-2");
  relay.handle_package_here("d", now);
  relay.handle_package_progress("d", now);
  pass(seconds{10});
  EXPECT_NE(take<CommandDone>()->result.find("while its package was fetched"), std::string::npos);
}

TEST_F(RelayStepTimesTest, ACommandThatFetchesNothingHasTheTimeOfTheRest) {
  bring_up();
  become_ready();
  relay.handle_session_ended(now);
  specialize("c-2");
  EXPECT_FALSE(take<FetchPackage>());
  pass(seconds{999});
  EXPECT_FALSE(take<CommandDone>());
  pass(seconds{1});
  EXPECT_TRUE(take<CommandDone>());
}

TEST_F(RelayPackageTest, APackageIsComparedBeforeTheNextProcessGetsIt) {
  bring_up();
  become_ready();
  relay.handle_worker_ended({.kind = WorkerEnd::Kind::Signalled, .code = 9}, now);
  pass(seconds{30});
  EXPECT_TRUE(take<Spawn>()->folder.empty());
  EXPECT_EQ(take<FetchPackage>()->digest, "d");
  worker_says(Content::StartStream, body_of("a.2"));
  runtime_says(Content::WorkerInitRequest);
  worker_says(Content::WorkerInitResponse);
  EXPECT_FALSE(take<SendReload>());
  relay.handle_package("d", "/apps/d", now);
  EXPECT_EQ(take<SendReload>()->folder, "/apps/d");
}

TEST_F(RelayPackageTest, ComparingAPackageDoesNotDisturbTheFetchOfAnother) {
  bring_up();
  become_ready();
  specialize("c-2", "e");
  EXPECT_EQ(take<FetchPackage>()->digest, "e");
  relay.handle_worker_ended({.kind = WorkerEnd::Kind::Signalled, .code = 9}, now);
  pass(seconds{30});
  EXPECT_FALSE(take<FetchPackage>());
  relay.handle_package_failed("e", ErrorCode::PkgInvalid, "refused", now);
  EXPECT_EQ(take<FetchPackage>()->digest, "d");
}

}  // namespace
}  // namespace windlass::agent
