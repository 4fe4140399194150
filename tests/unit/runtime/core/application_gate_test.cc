#include "runtime/core/application_gate.h"

#include <gtest/gtest.h>

#include "runtime/core/stream_identity.h"

namespace windlass::runtime {
namespace {

class ApplicationGateTest : public ::testing::Test {
 protected:
  void make(GateOptions options) {
    gate = std::make_unique<ApplicationGate>(std::move(options));
    gate->open(kAgent, "acme", "i-1");
  }
  void say(const std::string& application, ChannelId channel = kAgent) {
    WorkerSpecialized request;
    request.application.job_host.application_id = application;
    request.correlation_id = "c";
    gate->handle(channel, std::move(request), now);
  }
  // "granted", "refused", or nothing: it waits.
  std::string verdict() {
    const auto decision = gate->poll_decision();
    if (!decision) return "";
    return decision->is_granted ? "granted" : "refused";
  }
  void pass(Duration time) {
    now += time;
    gate->handle_timeout(now);
  }
  void whole(std::vector<std::pair<std::string, std::string>> granted) {
    gate->apply({.epoch = ++epoch, .is_whole = true, .granted = std::move(granted)}, now);
  }

  static constexpr ChannelId kAgent{1};
  std::unique_ptr<ApplicationGate> gate;
  Instant now{seconds{100}};
  std::uint64_t epoch = 0;
};

TEST_F(ApplicationGateTest, WithoutASchedulerTheSettingsSayWhoServesWhat) {
  make({.grants = {{"", "i-1", "shop"}, {"other", "*", "bank"}, {"acme", "*", "blog"}}});
  say("shop");
  EXPECT_EQ(verdict(), "granted");
  say("blog");
  EXPECT_EQ(verdict(), "granted");
  say("bank");
  const auto refused = gate->poll_decision();
  ASSERT_TRUE(refused);
  EXPECT_FALSE(refused->is_granted);
  EXPECT_EQ(refused->request.correlation_id, "c");
  EXPECT_NE(refused->reason.find("[[grant]]"), std::string::npos);
}

TEST_F(ApplicationGateTest, WithoutAnyGrantNobodyIsBelieved) {
  make({});
  say("shop");
  EXPECT_EQ(verdict(), "refused");
}

TEST_F(ApplicationGateTest, BeforeTheSchedulersFirstWordEverythingWaits) {
  make({.has_scheduler = true});
  say("shop");
  pass(seconds{3600});
  EXPECT_EQ(verdict(), "");
  EXPECT_FALSE(gate->poll_timeout());
  whole({{"i-1", "shop"}});
  EXPECT_EQ(verdict(), "granted");
}

TEST_F(ApplicationGateTest, WhatIsNotGrantedWaitsAMomentAndIsRefused) {
  make({.has_scheduler = true, .wait = seconds{10}});
  whole({{"i-1", "shop"}, {"i-2", "bank"}});
  say("bank");
  EXPECT_EQ(verdict(), "");
  EXPECT_EQ(gate->poll_timeout(), now + seconds{10});
  pass(seconds{9});
  EXPECT_EQ(verdict(), "");
  pass(seconds{1});
  EXPECT_EQ(verdict(), "refused");
  EXPECT_FALSE(gate->poll_timeout());
}

TEST_F(ApplicationGateTest, AGrantThatComesLateIsGoodEnough) {
  make({.has_scheduler = true});
  whole({});
  say("shop");
  EXPECT_EQ(verdict(), "");
  gate->apply({.epoch = ++epoch, .granted = {{"i-1", "shop"}}}, now);
  EXPECT_EQ(verdict(), "granted");
}

TEST_F(ApplicationGateTest, AWholeOneHoldsOnceItsLastPartIsHere) {
  make({.has_scheduler = true});
  whole({{"i-1", "shop"}});
  say("shop");
  EXPECT_EQ(verdict(), "granted");
  gate->apply({.epoch = 7, .is_whole = true, .has_more = true, .granted = {{"i-9", "shop"}}}, now);
  EXPECT_FALSE(gate->poll_trust()) << "the grant may be in the next part";
  gate->apply({.epoch = 7, .is_whole = true, .granted = {{"i-1", "shop"}}}, now);
  EXPECT_FALSE(gate->poll_trust());
}

TEST_F(ApplicationGateTest, WhatCameOfAWholeOneThatWasCutIsForgotten) {
  make({.has_scheduler = true});
  whole({{"i-1", "shop"}});
  say("shop");
  EXPECT_EQ(verdict(), "granted");
  // The same epoch twice: nothing was stored between the two sessions.
  gate->apply(
      {.epoch = 7, .is_whole = true, .is_first = true, .has_more = true, .granted = {{"i-1", "shop"}}}, now);
  gate->apply(
      {.epoch = 7, .is_whole = true, .is_first = true, .has_more = true, .granted = {{"i-2", "shop"}}}, now);
  gate->apply({.epoch = 7, .is_whole = true, .is_first = false, .granted = {{"i-3", "shop"}}}, now);
  EXPECT_EQ(gate->poll_trust(), (std::pair{kAgent, false}));
}

TEST_F(ApplicationGateTest, WithoutAMarkAnotherEpochIsAnotherWholeOne) {
  make({.has_scheduler = true});
  whole({{"i-1", "shop"}});
  say("shop");
  EXPECT_EQ(verdict(), "granted");
  gate->apply({.epoch = 7, .is_whole = true, .has_more = true, .granted = {{"i-1", "shop"}}}, now);
  gate->apply({.epoch = 8, .is_whole = true, .has_more = true, .granted = {{"i-2", "shop"}}}, now);
  gate->apply({.epoch = 8, .is_whole = true, .granted = {{"i-3", "shop"}}}, now);
  EXPECT_EQ(gate->poll_trust(), (std::pair{kAgent, false}));
  gate->open(ChannelId{2}, "acme", "i-2");
  say("shop", ChannelId{2});
  EXPECT_EQ(verdict(), "granted") << "of the first part";
}

TEST_F(ApplicationGateTest, WhoLosesItsGrantIsNotTrustedUntilItHasOneAgain) {
  make({.has_scheduler = true});
  whole({{"i-1", "shop"}});
  say("shop");
  EXPECT_EQ(verdict(), "granted");
  gate->apply({.epoch = ++epoch, .revoked = {"i-1"}}, now);
  EXPECT_EQ(gate->poll_trust(), (std::pair{kAgent, false}));
  gate->apply({.epoch = ++epoch, .granted = {{"i-1", "shop"}}}, now);
  EXPECT_EQ(gate->poll_trust(), (std::pair{kAgent, true}));
  EXPECT_FALSE(gate->poll_trust());
}

TEST_F(ApplicationGateTest, AnOlderWordChangesNothing) {
  make({.has_scheduler = true});
  epoch = 5;
  whole({});
  gate->apply({.epoch = 2, .granted = {{"i-1", "bank"}}}, now);
  say("bank");
  pass(seconds{20});
  EXPECT_EQ(verdict(), "refused");
}

TEST_F(ApplicationGateTest, AWorkerThatIsGoneAsksForNothing) {
  make({.has_scheduler = true});
  say("shop");
  gate->forget(kAgent);
  whole({{"i-1", "shop"}});
  EXPECT_EQ(verdict(), "");
  say("shop");
  EXPECT_EQ(verdict(), "granted");
  gate->close(kAgent);
  gate->apply({.epoch = ++epoch, .revoked = {"i-1"}}, now);
  EXPECT_FALSE(gate->poll_trust());
}

StreamFacts shown(StreamCredential credential, bool says_agent = false) {
  return {.shown = Result<StreamCredential>{std::move(credential)}, .user = {}, .says_agent = says_agent};
}

TEST(StreamIdentityTest, ACredentialBindsAWorkerToItsIdAndItsApplication) {
  const StreamRules rules{.tenant = "acme", .application = "shop", .users = {}};
  const auto bound = identify_stream(shown({"acme", "w-1", "bank"}), rules);
  ASSERT_TRUE(bound) << bound.error().reason;
  EXPECT_EQ(bound->instance, "w-1");
  EXPECT_EQ(bound->application, "bank");
  EXPECT_FALSE(bound->is_agent);
  EXPECT_EQ(identify_stream(shown({"acme", "w-1", ""}), rules)->application, "shop");
  EXPECT_FALSE(identify_stream(shown({"acme", "", "bank"}), rules)) << "bound to no worker";
  EXPECT_FALSE(identify_stream(shown({"other", "w-1", "bank"}), rules));
  EXPECT_FALSE(identify_stream(shown({"acme", "w-1", "bank", false, true}), rules)) << "a runtime's";
  const StreamFacts wrong{.shown = Error{ErrorCode::AuthInvalidToken, Blame::Peer, "no"}, .user = 7};
  EXPECT_FALSE(identify_stream(wrong, {.tenant = "", .application = "", .users = {7}}));
}

TEST(StreamIdentityTest, OnlyACredentialMakesAnAgent) {
  const StreamRules rules{.tenant = "", .application = "shop", .users = {7}};
  const auto agent = identify_stream(shown({"acme", "i-1", "", true}, true), rules);
  ASSERT_TRUE(agent);
  EXPECT_TRUE(agent->is_agent);
  EXPECT_EQ(agent->application, "");
  EXPECT_FALSE(identify_stream(shown({"acme", "i-1", "", false}, true), rules));
  EXPECT_FALSE(identify_stream({.shown = {}, .user = 7, .says_agent = true}, rules));
}

TEST(StreamIdentityTest, OnThisMachineTheUserOfTheProcessDecides) {
  const StreamRules rules{.tenant = "", .application = "shop", .users = {7}};
  EXPECT_EQ(identify_stream({.shown = {}, .user = 7}, rules)->application, "shop");
  EXPECT_FALSE(identify_stream({.shown = {}, .user = 8}, rules));
  EXPECT_FALSE(identify_stream({.shown = {}, .user = {}}, rules));
}

}  // namespace
}  // namespace windlass::runtime
