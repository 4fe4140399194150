#include "worker-agent/core/worker_command.h"

#include <gtest/gtest.h>

#include "worker-agent/core/package_fetch.h"

namespace windlass::agent {
namespace {

const std::string kDigest(64, 'a');
const std::string kGood =
    R"({"application_id":"shop","metadata_version":"m","code_version":"c","language":"node",)"
    R"("package":{"digest":")" +
    kDigest + R"(","bytes":5},"settings":{"A":"1"},"runtime":{"id":"r","url":"ws://h"}})";

TEST(WorkerCommand, ASpecializeIsReadWhole) {
  const auto command = parse_worker_command(kSpecialize, kGood, RunId{"c"});
  ASSERT_TRUE(command.has_value());
  const auto& specialize = std::get<Specialize>(command->what);
  EXPECT_EQ(specialize.application.package_digest, kDigest);
  EXPECT_EQ(specialize.application.settings.at(0).second, "1");
  EXPECT_EQ(specialize.runtime->url, "ws://h");
}

TEST(WorkerCommand, WhatIsWrongIsRefusedWithItsReason) {
  const auto reason = [](std::string_view type, std::string_view payload) {
    const auto command = parse_worker_command(type, payload, RunId{"c"});
    return command ? std::string{} : command.error().reason;
  };
  EXPECT_EQ(reason(kSpecialize, "{}"), "application_id must be text of 1 to 256 bytes");
  EXPECT_EQ(reason(kReassign, "{}"), "runtime is missing: it says where to go");
  std::string bad = kGood;
  bad.replace(bad.find(kDigest), 3, "../");
  EXPECT_EQ(reason(kSpecialize, bad), "package.digest must be a SHA-256 in 64 lower-case hex digits");
  bad = kGood;
  bad.replace(bad.find("\"A\""), 3, "\"A=B\"");
  EXPECT_NE(reason(kSpecialize, bad).find("a setting's name"), std::string::npos);
}

TEST(WorkerCommand, AnAssignmentIsReadAsItWasWritten) {
  const auto command = parse_worker_command(kSpecialize, kGood, RunId{"c"});
  Assignment assignment{.runtime = RuntimeTarget{"r", "ws://h"},
                        .application = std::get<Specialize>(command->what).application};
  const auto read = parse_assignment(assignment_text(assignment));
  ASSERT_TRUE(read.has_value()) << read.error().reason;
  EXPECT_EQ(*read, assignment);
}

Message part_of(std::string_view corr, std::uint64_t offset, std::string_view bytes) {
  const std::string payload =
      R"({"digest":")" + kDigest + R"(","offset":)" + std::to_string(offset) + R"(,"total":5})";
  return Message{{.type = kPackagePart,
                  .id = "p",
                  .payload = payload,
                  .corr = corr,
                  .attachment = Attachment{"application/octet-stream", bytes}}};
}

TEST(PackageFetch, AsksForWhatFollowsUntilAllCame) {
  const Instant now{seconds{1}};
  PackageFetch fetch{kDigest, 5};
  ASSERT_TRUE(fetch.poll_request("g-1"));
  fetch.handle_requested("g-1", now);
  EXPECT_FALSE(fetch.poll_request("g-2")) << "one at a time";
  EXPECT_FALSE(*fetch.handle_part(part_of("g-0", 0, "xxx"))) << "an answer to another request";
  EXPECT_EQ(**fetch.handle_part(part_of("g-1", 0, "abc")), "abc");
  EXPECT_NE(fetch.poll_request("g-2")->payload().find(R"("offset":3)"), std::string_view::npos);
  fetch.handle_requested("g-2", now);
  EXPECT_FALSE(fetch.handle_part(part_of("g-2", 3, "more than fits")).has_value());
  EXPECT_EQ(**fetch.handle_part(part_of("g-2", 3, "de")), "de");
  EXPECT_TRUE(fetch.is_complete());
}

TEST(PackageFetch, APartThatComesAfterItWasAskedForAgainCounts) {
  Instant now{seconds{1}};
  PackageFetch fetch{kDigest, 5};
  fetch.handle_requested("g-1", now);
  now += kPartPatience;
  fetch.handle_timeout(now);
  fetch.handle_requested("g-2", now);
  EXPECT_EQ(**fetch.handle_part(part_of("g-1", 0, "abc")), "abc");
  fetch.handle_requested("g-3", now);
  EXPECT_FALSE(*fetch.handle_part(part_of("g-2", 0, "abc"))) << "the same once more";
  EXPECT_EQ(**fetch.handle_part(part_of("g-3", 3, "de")), "de");
  EXPECT_TRUE(fetch.is_complete());
}

TEST(PackageFetch, AsksAgainAndGivesUpInTheEnd) {
  Instant now{seconds{1}};
  PackageFetch fetch{kDigest, 5};
  for (std::uint32_t i = 0; i < kPartAttemptsMax; ++i) {
    ASSERT_TRUE(fetch.poll_request("g"));
    fetch.handle_requested("g", now);
    now += kPartPatience;
    fetch.handle_timeout(now);
  }
  EXPECT_FALSE(fetch.poll_request("g"));
  EXPECT_FALSE(fetch.failure().empty());
}

}  // namespace
}  // namespace windlass::agent
