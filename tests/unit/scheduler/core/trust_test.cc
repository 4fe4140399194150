// Who is believed: which runtime hears that an instance may serve an application, where runtimes may be, and
// who is kept out.
#include "scheduler/core/grants.h"
#include "scheduler/core/runtime_address.h"
#include "scheduler/core/runtime_text.h"
#include "tests/unit/scheduler/core/apps_fixture.h"

namespace windlass {
namespace {

class TrustTest : public AppsTest {
 protected:
  // A runtime that understands grants.
  SessionRef open_trusted(std::string_view name = "r1") {
    const SessionRef session = open_runtime(kRuntimeStatus, name);
    WorkerProfile profile;
    profile.payload_types = {"biz.runtime.invoke", "biz.runtime.grants"};
    say(session, Registered{std::make_shared<const WorkerProfile>(std::move(profile))});
    return session;
  }
  static std::vector<std::string> told(const Effects& effects, SessionRef session) {
    std::vector<std::string> payloads;
    for (const Tell& each : effects.tells) {
      if (each.session == session && each.message.type() == kGrantsType) {
        payloads.emplace_back(each.message.payload());
      }
    }
    return payloads;
  }
  static bool has(const std::vector<std::string>& payloads, std::string_view text) {
    return std::ranges::any_of(payloads,
                               [&](const std::string& each) { return each.find(text) != each.npos; });
  }
  static constexpr std::string_view kGranted = R"("granted":[{"instance":"w1","application_id":"hello"}])";
  static constexpr std::string_view kRevoked = R"("revoked":["w1"])";
};

TEST_F(TrustTest, ARuntimeHearsOfAnAssignmentWithTheBatchThatOrdersIt) {
  deploy(app());
  const SessionRef runtime = open_trusted();
  open_placeholder();
  const auto first = told(settle(), runtime);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_TRUE(has(first, R"("whole":true)"));
  EXPECT_TRUE(has(first, R"("granted":[])"));
  assign();
  std::optional<Effects> ordered;
  while (auto effects = step()) {
    if (!effects->sends.empty()) ordered = std::move(effects);
  }
  ASSERT_TRUE(ordered);
  EXPECT_EQ(ordered->sends[0].message.type(), kSpecializeType);
  EXPECT_TRUE(has(told(*ordered, runtime), kGranted));
}

TEST_F(TrustTest, AReleasedWorkerLosesItsGrant) {
  const SessionRef worker = begin_ready();
  const SessionRef runtime = open_trusted();
  EXPECT_TRUE(has(told(settle(), runtime), kGranted)) << "a runtime that begins anew hears all of it";
  unassign();
  EXPECT_FALSE(has(told(settle(), runtime), kRevoked)) << "what it has under way is its own";
  deliver_result(worker, "u.1");
  EXPECT_TRUE(has(told(settle(), runtime), kRevoked));
}

// Its runtime would answer for it with "try again later" for ever.
TEST_F(TrustTest, NobodyIsGrantedAnApplicationThatIsGone) {
  const SessionRef worker = begin();
  const SessionRef runtime = open_trusted();
  assign();
  settle();
  deliver_result(worker, "a.1", R"({"ok":false,"code":"E.PKG.INVALID","reason":"no room"})");
  EXPECT_FALSE(has(told(settle(), runtime), kRevoked)) << "it may still come";
  core_->handle(UndeployApp{RequestId{++next_request_}, kAcme, "hello", ""}, now_);
  EXPECT_TRUE(has(told(settle(), runtime), kRevoked));
}

TEST_F(TrustTest, GrantsAreSaidAgainAfterARestart) {
  begin_ready();
  restart();
  const SessionRef runtime = open_trusted();
  const auto said = told(settle(), runtime);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_TRUE(has(said, R"("whole":true)"));
  EXPECT_TRUE(has(said, kGranted));
}

TEST_F(TrustTest, WhatTheStoreRefusedIsGrantedToNobody) {
  deploy(app());
  const SessionRef runtime = open_trusted();
  open_placeholder();
  settle();
  fill_store();
  assign();
  const auto while_full = told(settle(), runtime);
  EXPECT_FALSE(has(while_full, "w1"));
  make_room();
  pass(seconds{20});
  EXPECT_FALSE(has(told(settle(), runtime), "w1"));
}

TEST_F(TrustTest, AWorkerThatHoldsWhatItMayNotServeIsReleased) {
  deploy(app());
  open_runtime();
  const SessionRef worker = open(kWorker);
  status(worker, R"({"worker_id":"w1.1","language":"node","runtime":"r1","state":"failed",)"
                 R"("application":{"application_id":"hello","metadata_version":"m","code_version":"v1"}})");
  const Effects effects = settle();
  ASSERT_EQ(effects.sends.size(), 1U);
  EXPECT_EQ(effects.sends[0].message.type(), kReleaseType);
}

TEST_F(TrustTest, ARuntimeThatDoesNotKnowGrantsIsToldNone) {
  const SessionRef runtime = open_runtime();
  begin_ready();
  EXPECT_TRUE(told(settle(), runtime).empty());
}

TEST_F(TrustTest, ARevokedWorkerIsGrantedNothing) {
  begin_ready();
  const SessionRef runtime = open_trusted();
  settle();
  ask<RevokeWorker>(kWorker);
  EXPECT_TRUE(has(told(settle(), runtime), kRevoked));
  ask<AllowWorker>(kWorker);
  EXPECT_TRUE(has(told(settle(), runtime), kGranted));
}

TEST_F(TrustTest, ARevokedWorkerIsKeptOutUntilItIsAllowed) {
  open(kWorker);
  settle();
  ask<RevokeWorker>(kWorker);
  settle();
  EXPECT_TRUE(core_->is_denied(kWorker));
  restart();
  EXPECT_TRUE(core_->is_denied(kWorker));
  const SessionRef slipped = open(kWorker);
  const Effects effects = settle();
  ASSERT_EQ(effects.session_commands.size(), 1U);
  const auto& reset = std::get<ResetSession>(effects.session_commands[0]);
  EXPECT_EQ(reset.session, slipped);
  EXPECT_EQ(reset.code, ErrorCode::SessionDenied);
  pass(options_.token_lifetime * 2);
  settle();
  EXPECT_TRUE(core_->is_denied(kWorker)) << "longer than any token lives";
  const RequestId allow = ask<AllowWorker>(kWorker);
  const Effects allowed = settle();
  EXPECT_FALSE(refusal(allowed, allow));
  EXPECT_EQ(std::get<AllowInstance>(allowed.session_commands.at(0)).worker, kWorker);
  EXPECT_EQ(rows("denial/"), 0U);
  const RequestId again = ask<AllowWorker>(kWorker);
  EXPECT_EQ(refusal(settle(), again), ErrorCode::SessionUnknown);
}

TEST_F(TrustTest, ADenialThatCannotBeStoredIsNone) {
  open(kWorker);
  settle();
  fill_store();
  const RequestId request = ask<RevokeWorker>(kWorker);
  EXPECT_TRUE(refusal(settle(), request));
  EXPECT_FALSE(core_->is_denied(kWorker));
}

TEST_F(TrustTest, DenialsAreBounded) {
  options_.denials_max = 1;
  restart();
  ask<RevokeWorker>(kWorker);
  settle();
  const RequestId again = ask<RevokeWorker>(kWorker);
  const RequestId second = ask<RevokeWorker>(worker_key("w2"));
  const Effects effects = settle();
  EXPECT_FALSE(refusal(effects, again));
  EXPECT_EQ(refusal(effects, second), ErrorCode::LimitCapacity);
}

TEST_F(TrustTest, AgentsAreNotSentToAnAddressThatNobodyVouchesFor) {
  options_.runtime_addresses = {"runtime.example:7543"};
  restart();
  deploy(app());
  open_runtime(R"({"url":"ws://attacker.example:7543","health":"Healthy"})");
  open_placeholder();
  const Effects effects = settle();
  ASSERT_EQ(events<RuntimeAddressRefused>(effects).size(), 1U);
  const Worker* const runtime = core_->fleet().find(worker_key("r1"));
  EXPECT_EQ(runtime->runtime->url, "");
  EXPECT_EQ(runtime->runtime->url_refused, "ws://attacker.example:7543");
  assign();
  for (const Send& each : settle().sends) {
    EXPECT_EQ(each.message.payload().find("attacker"), std::string_view::npos);
  }
}

TEST(RuntimeAddress, IsVouchedForByTheSettings) {
  const auto vouched = [](std::string_view url, const std::vector<std::string>& addresses) {
    return is_vouched_for(url, addresses, {});
  };
  EXPECT_TRUE(vouched("wss://r1.example:7543/ws/worker", {"r1.example"}));
  EXPECT_TRUE(vouched("wss://R1.Example:7543", {"r1.example:7543"}));
  EXPECT_FALSE(vouched("wss://r1.example:7544", {"r1.example:7543"}));
  EXPECT_TRUE(vouched("https://r1.example:1", {"*.example"}));
  EXPECT_FALSE(vouched("https://a.b.example:1", {"*.example"}));
  EXPECT_FALSE(vouched("wss://example:1", {"*.example"}));
  EXPECT_TRUE(vouched("ws://[::1]:7543/ws/worker", {"[::1]:7543"}));
  EXPECT_TRUE(vouched("ws://[::1]:7543/ws/worker", {"::1"}));
  EXPECT_TRUE(vouched("ws://anywhere", {"*"}));
  EXPECT_FALSE(vouched("wss://r1.example@attacker:1", {"r1.example"}));
  EXPECT_FALSE(vouched("wss://attacker/r1.example", {"r1.example"}));
  EXPECT_FALSE(vouched("ftp://r1.example", {"r1.example"}));
  EXPECT_FALSE(vouched("r1.example", {"r1.example"}));
  EXPECT_FALSE(vouched("wss://r1.example", {}));
}

TEST(RuntimeAddress, IsVouchedForByTheCertificate) {
  const std::vector<std::string> names{"DNS:r1.example", "IP:10.0.0.7", "URI:spiffe://x", "DNS:*.inner"};
  EXPECT_TRUE(is_vouched_for("wss://r1.example:7543", {}, names));
  EXPECT_TRUE(is_vouched_for("wss://10.0.0.7:7543", {}, names));
  EXPECT_TRUE(is_vouched_for("wss://a.inner", {}, names));
  EXPECT_FALSE(is_vouched_for("wss://r2.example", {}, names));
  EXPECT_FALSE(is_vouched_for("wss://10.0.0.8", {}, names));
}

TEST(RuntimeAddress, OfTheSettingsHasAHostAndPerhapsAPort) {
  for (const char* good : {"r1", "r1:7543", "*.example", "*", "::1", "[::1]:7", "10.0.0.1"}) {
    EXPECT_TRUE(is_runtime_address(good)) << good;
  }
  for (const char* bad : {"", ":7543", "r1:x", "wss://r1", "r*", "a b"}) {
    EXPECT_FALSE(is_runtime_address(bad)) << bad;
  }
}

TEST(GrantsTest, AWholeThatDoesNotFitOneMessageGoesInParts) {
  Grants grants;
  const SessionRef session{0, 1};
  grants.open(TenantId{"acme"}, "r1", session);
  GrantTable table;
  for (std::size_t i = 0; i < 2 * Grants::kPerMessageMax + 1; ++i) {
    table[TenantId{"acme"}].push_back({"w" + std::to_string(i), "hello", "r1"});
  }
  table[TenantId{"other"}].push_back({"x", "bank", ""});
  table[TenantId{"acme"}].push_back({"y", "bank", "r2"});
  const auto updates = grants.update(table);
  ASSERT_EQ(updates.size(), 3U);
  std::size_t count = 0;
  for (const GrantUpdate& each : updates) {
    EXPECT_TRUE(each.is_whole);
    EXPECT_EQ(each.has_more, &each != &updates.back());
    EXPECT_EQ(each.is_first, &each == &updates.front());
    const std::string mark = each.is_first ? R"("first":true)" : R"("first":false)";
    EXPECT_NE(grants_payload(each, 1).find(mark), std::string::npos);
    count += each.granted.size();
    for (const auto& [instance, application] : each.granted) EXPECT_EQ(application, "hello");
  }
  EXPECT_EQ(count, 2 * Grants::kPerMessageMax + 1);
  EXPECT_TRUE(grants.update(table).empty()) << "nothing changed";
  // Whatever of it arrived: another session hears all of it, from the beginning.
  grants.close(session);
  grants.open(TenantId{"acme"}, "r1", {0, 2});
  const auto again = grants.update(table);
  ASSERT_EQ(again.size(), 3U);
  EXPECT_TRUE(again.front().is_whole && again.front().is_first);
  EXPECT_EQ(again.front().session, (SessionRef{0, 2}));
}

}  // namespace
}  // namespace windlass
