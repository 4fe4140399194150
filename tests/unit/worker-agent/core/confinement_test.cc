#include "worker-agent/core/confinement.h"

#include <gtest/gtest.h>

#include <set>

namespace windlass::agent {
namespace {

ConfinementFacts plain_facts() {
  ConfinementFacts facts;
  facts.self = {1000, 1000};
  facts.state_folder = "/home/dev/var";
  facts.private_folders = {"/tmp", "/home/dev", "/home"};
  facts.scratch_folders = {"/tmp"};
  facts.secret_files = {"/etc/windlass/token", "/etc/token"};
  facts.needed = {"/home/dev/var/packages", "/usr/libexec/worker", "/home/dev/worker"};
  facts.writable = {"/home/dev/var/scratch"};
  facts.own_folder = "/home/dev/var/scratch";
  facts.processes_max = 100;
  facts.open_files_max = 1000;
  facts.memory_bytes_max = 1 << 30;
  facts.scratch_bytes_max = 1 << 29;
  return facts;
}

TEST(Confinement, PassesTheCommandLineAndBack) {
  Confinement how;
  how.kind = ConfinementKind::Namespace;
  how.ids = {61234, 61235};
  how.is_user_exclusive = true;
  how.hidden = {"/a b", "/c"};
  how.scratch = {"/c"};
  how.shown = {"/a b/d=e"};
  how.writable = {"/a b/w"};
  how.covered = {"/etc/token"};
  how.swept = {"/var/tmp"};
  how.own_folder = "/a b/w";
  how.has_call_filter = false;
  how.has_port_rules = false;
  how.has_own_proc = false;
  how.ports = {{80, 80}, {32768, 65535}};
  how.processes_max = 7;
  how.open_files_max = 8;
  how.memory_bytes_max = 9;
  how.scratch_bytes_max = 10;
  auto arguments = to_arguments(how);
  arguments.insert(arguments.end(), {"/folder", "kind=none"});
  std::size_t taken = 0;
  const auto read = parse_confinement(arguments, taken);
  ASSERT_TRUE(read) << read.error().reason;
  EXPECT_EQ(*read, how);
  EXPECT_EQ(taken, arguments.size() - 2);
}

TEST(Confinement, RefusesOptionsThatItDoesNotKnow) {
  std::size_t taken = 0;
  for (const std::vector<std::string>& each : {std::vector<std::string>{"kind=user"},  // no "--"
                                               {"kind=root", "--"},
                                               {"hide=relative", "--"},
                                               {"user=x", "--"},
                                               {"ports=0-1", "--"},
                                               {"ports=9-8", "--"},
                                               {"ports=9", "--"},
                                               {"ports=1-65536", "--"},
                                               {"more=1", "--"},
                                               {"nothing", "--"}}) {
    EXPECT_FALSE(parse_confinement(each, taken)) << each.front();
  }
}

TEST(Confinement, RootPrefersAnotherUserOfItsOwn) {
  ConfinementFacts facts = plain_facts();
  facts.self = {0, 0};
  facts.may_switch_user = true;
  facts.own_user = UserIds{60800, 60800};
  facts.is_own_user_exclusive = true;
  const auto choices = confinement_choices(facts, ConfinementLevel::Best);
  ASSERT_EQ(choices.size(), 3U);
  EXPECT_EQ(choices[0].kind, ConfinementKind::OtherUser);
  EXPECT_EQ(choices[0].ids, (UserIds{60800, 60800}));
  EXPECT_TRUE(choices[0].is_user_exclusive);
  EXPECT_TRUE(confinement_gaps(choices[0]).empty());
  EXPECT_EQ(choices[2].kind, ConfinementKind::Shared);
}

TEST(Confinement, AnotherUserHasTemporaryFoldersOfItsOwnOrIsSweptUpAfter) {
  ConfinementFacts facts = plain_facts();
  facts.self = {0, 0};
  facts.may_switch_user = true;
  facts.own_user = UserIds{60800, 60800};
  facts.is_own_user_exclusive = true;
  facts.needed.emplace_back("/tmp/worker");
  const auto choices = confinement_choices(facts, ConfinementLevel::Required);
  ASSERT_EQ(choices.size(), 2U);
  EXPECT_EQ(choices[0].hidden, std::vector<std::string>{"/tmp"});
  EXPECT_EQ(choices[0].scratch, std::vector<std::string>{"/tmp"});
  EXPECT_EQ(choices[0].shown, std::vector<std::string>{"/tmp/worker"});
  EXPECT_EQ(choices[0].writable, std::vector<std::string>{"/home/dev/var/scratch"});
  EXPECT_TRUE(choices[0].swept.empty());
  EXPECT_FALSE(choices[1].has_namespaces());
  EXPECT_EQ(choices[1].swept, std::vector<std::string>{"/tmp"});
  EXPECT_EQ(confinement_gaps(choices[1]).size(), 2U) << "shared folders, and no bound for all files together";
}

TEST(Confinement, ASecretThatIsHiddenUntilItIsReplacedIsAGap) {
  ConfinementFacts facts = plain_facts();
  facts.secret_files = {"/etc/windlass/token"};
  const auto in_namespace = [&] { return confinement_choices(facts, ConfinementLevel::Required).front(); };
  ASSERT_EQ(in_namespace().kind, ConfinementKind::Namespace);
  EXPECT_TRUE(secret_gaps(in_namespace(), facts).empty());
  facts.secret_files.emplace_back("/etc/token");
  ASSERT_EQ(secret_gaps(in_namespace(), facts).size(), 1U);
  EXPECT_NE(secret_gaps(in_namespace(), facts)[0].find("/etc/token once it is replaced"), std::string::npos);
  facts.linked_secrets = {"/srv/data/token"};
  EXPECT_EQ(secret_gaps(in_namespace(), facts).size(), 2U);
  Confinement other;
  other.kind = ConfinementKind::OtherUser;
  EXPECT_TRUE(secret_gaps(other, facts).empty());
}

TEST(Confinement, AWallThatIsMissingIsAGap) {
  const Confinement whole = confinement_choices(plain_facts(), ConfinementLevel::Required).front();
  const std::size_t before = confinement_gaps(whole).size();
  EXPECT_EQ(without_missing(whole, ""), whole);
  const Confinement open = without_missing(whole, kNoCallFilter);
  EXPECT_FALSE(open.has_call_filter);
  EXPECT_TRUE(open.has_own_proc);
  EXPECT_EQ(confinement_gaps(open).size(), before + 1);
  const Confinement both =
      without_missing(whole, std::string{kNoOwnProc} + "\n" + std::string{kNoCallFilter});
  EXPECT_FALSE(both.has_own_proc);
  EXPECT_EQ(confinement_gaps(both).size(), before + 2);
  const Confinement listening = without_missing(whole, kNoPortRules);
  EXPECT_FALSE(listening.has_port_rules);
  EXPECT_TRUE(listening.has_call_filter);
  EXPECT_EQ(confinement_gaps(listening).size(), before + 1);
}

TEST(Confinement, WhatIsNotLimitedIsAGap) {
  ConfinementFacts facts = plain_facts();
  const auto gaps = [&] {
    return confinement_gaps(confinement_choices(facts, ConfinementLevel::Required).front()).size();
  };
  const std::size_t before = gaps();
  facts.memory_bytes_max = 0;
  EXPECT_EQ(gaps(), before + 1);
  facts.scratch_bytes_max = 0;
  EXPECT_EQ(gaps(), before + 2);
}

TEST(Confinement, AUserThatIsNotReservedIsNotTakenForExclusive) {
  ConfinementFacts facts = plain_facts();
  facts.self = {0, 0};
  facts.may_switch_user = true;
  facts.own_user = UserIds{60800, 60800};
  const auto choices = confinement_choices(facts, ConfinementLevel::Best);
  EXPECT_EQ(choices[0].kind, ConfinementKind::OtherUser);
  EXPECT_FALSE(choices[0].is_user_exclusive);
  EXPECT_FALSE(confinement_gaps(choices[0]).empty());
}

TEST(Confinement, WithoutAUserThatIsFreeTheNextKindIsTaken) {
  ConfinementFacts facts = plain_facts();
  facts.may_switch_user = true;
  const auto choices = confinement_choices(facts, ConfinementLevel::Best);
  ASSERT_EQ(choices.size(), 2U);
  EXPECT_EQ(choices[0].kind, ConfinementKind::Namespace);
  facts.self = {0, 0};
  EXPECT_TRUE(confinement_choices(facts, ConfinementLevel::Required).empty());
}

TEST(Confinement, TheUsersToTryAreAllOfTheRangeThatNobodyElseGivesOut) {
  std::set<std::uint32_t> users;
  for (std::uint32_t attempt = 0; attempt < kUserCount; ++attempt) {
    const UserIds ids = user_for("/var/lib/windlass-agent", attempt);
    EXPECT_EQ(ids.user, ids.group);
    users.insert(ids.user);
  }
  EXPECT_EQ(users.size(), kUserCount);
  EXPECT_GT(*users.begin(), 60705U);   // people, and ranges of systemd's
  EXPECT_LT(*users.rbegin(), 61184U);  // systemd's dynamic users
  EXPECT_EQ(user_for("/a", 3), user_for("/a", 3));
}

TEST(Confinement, AFolderThatKeepsTheOtherUserOutIsReplacedByOneThatDoesNot) {
  ConfinementFacts facts = plain_facts();
  facts.self = {0, 0};
  facts.may_switch_user = true;
  facts.own_user = UserIds{60800, 60800};
  facts.closed = {"/home/dev"};
  const auto choices = confinement_choices(facts, ConfinementLevel::Best);
  ASSERT_EQ(choices.size(), 4U);
  EXPECT_EQ(choices[1].kind, ConfinementKind::OtherUser);
  EXPECT_EQ(choices[1].hidden, (std::vector<std::string>{"/home/dev", "/tmp"}));
  EXPECT_EQ(choices[1].shown, (std::vector<std::string>{"/home/dev/var/packages", "/home/dev/worker"}));
  EXPECT_EQ(choices[1].writable, std::vector<std::string>{"/home/dev/var/scratch"});
}

TEST(Confinement, TheUserOfTheSettingsIsNotTakenForExclusive) {
  ConfinementFacts facts = plain_facts();
  facts.self = {0, 0};
  facts.may_switch_user = true;
  facts.wanted_user = UserIds{500, 501};
  const auto choices = confinement_choices(facts, ConfinementLevel::Best);
  EXPECT_EQ(choices[0].ids, (UserIds{500, 501}));
  EXPECT_FALSE(choices[0].is_user_exclusive);
}

TEST(Confinement, TheAgentsOwnUserConfinesNothing) {
  ConfinementFacts facts = plain_facts();
  facts.self = {0, 0};
  facts.may_switch_user = true;
  facts.wanted_user = UserIds{0, 0};
  EXPECT_TRUE(confinement_choices(facts, ConfinementLevel::Required).empty());
}

TEST(Confinement, APlainUserMakesANamespaceWithoutItsSecrets) {
  const auto choices = confinement_choices(plain_facts(), ConfinementLevel::Best);
  ASSERT_EQ(choices.size(), 2U);
  const Confinement& how = choices[0];
  EXPECT_EQ(how.kind, ConfinementKind::Namespace);
  EXPECT_EQ(how.hidden, (std::vector<std::string>{"/etc/windlass", "/home", "/tmp"}));
  EXPECT_EQ(how.scratch, std::vector<std::string>{"/tmp"});
  EXPECT_EQ(how.covered, std::vector<std::string>{"/etc/token"});  // /etc has more in it than secrets
  EXPECT_EQ(how.shown, (std::vector<std::string>{"/home/dev/var/packages", "/home/dev/worker"}));
  EXPECT_EQ(how.writable, std::vector<std::string>{"/home/dev/var/scratch"});
  EXPECT_EQ(choices[1].kind, ConfinementKind::Shared);
  EXPECT_FALSE(confinement_gaps(choices[1]).empty());
}

TEST(Confinement, ASecretIsCoveredWhereTheWorkerNeedsTheFolderAboveIt) {
  ConfinementFacts facts = plain_facts();
  facts.secret_files = {"/opt/windlass/agent.toml", "/home/dev/worker/token"};
  facts.needed.emplace_back("/opt/windlass");
  const Confinement how = confinement_choices(facts, ConfinementLevel::Required).front();
  EXPECT_EQ(how.hidden, (std::vector<std::string>{"/home", "/tmp"}));
  EXPECT_EQ(how.shown, (std::vector<std::string>{"/home/dev/var/packages", "/home/dev/worker"}));
  EXPECT_EQ(how.covered, facts.secret_files);
}

TEST(Confinement, RequiredNeverEndsAsShared) {
  for (const Confinement& each : confinement_choices(plain_facts(), ConfinementLevel::Required)) {
    EXPECT_NE(each.kind, ConfinementKind::Shared);
  }
}

TEST(Confinement, OffSaysSoInItsGaps) {
  const auto choices = confinement_choices(plain_facts(), ConfinementLevel::Off);
  ASSERT_EQ(choices.size(), 1U);
  EXPECT_FALSE(choices[0].is_guarded);
  EXPECT_GE(confinement_gaps(choices[0]).size(), 2U);
}

}  // namespace
}  // namespace windlass::agent
