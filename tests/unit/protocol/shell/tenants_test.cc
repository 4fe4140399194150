// The terms of tenants as loops find them; reading them from a file is the integration tests' matter.
#include "protocol/shell/tenants.h"

#include <gtest/gtest.h>

#include "protocol/shell/credentials.h"

namespace windlass {
namespace {

TEST(LiveTenants, GiveOneAccountPerTenantForAsLongAsTheyLive) {
  LiveTenants tenants{SessionConfig{}, {{"acme", {.sessions_max = 1}}}};
  TenantAccount& acme = tenants.account("acme");
  const auto place = acme.take_session();
  ASSERT_TRUE(place.has_value());
  //= LIM-9
  EXPECT_FALSE(tenants.account("acme").take_session().has_value());
  EXPECT_TRUE(tenants.account("globex").take_session().has_value());
  EXPECT_EQ(&tenants.account("acme"), &acme);
  tenants.replace({});
  EXPECT_EQ(&tenants.account("acme"), &acme) << "sessions that are up point to it";
  EXPECT_EQ(acme.sessions(), 1U);
}

TEST(LiveTenants, HaveWhatHoldsForAllWhereTheTableIsSilent) {
  SessionConfig session;
  session.mem_pct_max = 70;
  session.disk_pct_max = 80;
  LiveTenants tenants{session, {{"acme", {.disk_pct_max = 60, .schema_mode = SchemaMode::Count}}}};
  //= LIM-9
  EXPECT_EQ(tenants.account("acme").mem_pct_max(), 70);
  EXPECT_EQ(tenants.account("acme").disk_pct_max(), 60);
  EXPECT_EQ(tenants.account("acme").schema_mode(), SchemaMode::Count);
  EXPECT_EQ(tenants.account("globex").mem_pct_max(), 70);
  EXPECT_EQ(tenants.account("globex").disk_pct_max(), 80);
  EXPECT_EQ(tenants.account("globex").schema_mode(), SchemaMode::Strict);
}

TEST(LiveTenants, TakeANewTableForThoseWhoAreInAndThoseWhoCome) {
  LiveTenants tenants{SessionConfig{}, {{"acme", {.mem_pct_max = 50}}}};
  TenantAccount& acme = tenants.account("acme");
  TenantAccount& globex = tenants.account("globex");
  tenants.replace({{"globex", {.mem_pct_max = 60}}, {"initech", {.mem_pct_max = 70}}});
  //= LIM-9
  EXPECT_EQ(acme.mem_pct_max(), SessionConfig{}.mem_pct_max) << "it has no terms of its own any more";
  EXPECT_EQ(globex.mem_pct_max(), 60);
  EXPECT_EQ(tenants.account("initech").mem_pct_max(), 70);
}

TEST(LiveTenants, AreWhatAdmissionAnswersWith) {
  LiveTenants tenants{SessionConfig{}, {}};
  const LiveAdmission admission{Credentials{}, tenants, false};
  EXPECT_EQ(admission.account("acme"), &tenants.account("acme"));
}

}  // namespace
}  // namespace windlass
