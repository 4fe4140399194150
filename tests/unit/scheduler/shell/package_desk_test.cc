#include "scheduler/shell/package_desk.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "protocol/crypto/digest.h"
#include "protocol/crypto/text_encoding.h"
#include "scheduler/adapters/memory_packages.h"

namespace windlass {
namespace {

struct Served {
  SessionRef session;
  std::string corr;
  bool has_bytes = false;
};

// A refusal would fail what the agent does, and it asks again only because it heard nothing for a while.
TEST(PackageDesk, LeavesASecondQuestionOfASessionUnanswered) {
  const Bytes content = "package";
  const std::string digest = hex_encode(view_of(sha256(content)));
  auto store = std::make_unique<MemoryPackages>();
  ASSERT_TRUE(store->put({digest, 0, content.size(), content}).has_value());
  EventLoop loop;
  PackageDesk desk{loop, std::move(store), [](const std::string&) { return true; }};
  const SessionRef eager{0, 1};
  const SessionRef last{0, 2};
  std::vector<Served> served;
  const auto handler = [&](SessionRef session, const Message& message) {
    served.push_back({session, std::string{message.corr()}, message.attachment().has_value()});
    if (session == last) loop.stop();
  };
  loop.post([&] {
    desk.serve({eager, "first", {digest, 0}}, handler);
    desk.serve({eager, "again", {digest, 0}}, handler);
    desk.serve({last, "other", {digest, 0}}, handler);
  });
  loop.run();
  ASSERT_EQ(served.size(), 2U);
  EXPECT_EQ(served[0].corr, "first");
  EXPECT_TRUE(served[0].has_bytes);
  EXPECT_EQ(served[1].corr, "other");
}

TEST(PackageDesk, GivesPartsThatFitTheFramesOfItsSessions) {
  const Bytes content(20'000, 'x');
  const std::string digest = hex_encode(view_of(sha256(content)));
  auto store = std::make_unique<MemoryPackages>();
  ASSERT_TRUE(store->put({digest, 0, content.size(), content}).has_value());
  EventLoop loop;
  PackageDesk desk{loop, std::move(store), [](const std::string&) { return true; },
                   limits::package_part_bytes(limits::kFrameBytesLeast)};
  std::uint64_t bytes = 0;
  loop.post([&] {
    desk.serve({SessionRef{0, 1}, "first", {digest, 0}}, [&](SessionRef, const Message& message) {
      bytes = message.credit_bytes();
      EXPECT_FALSE(message.attachment()->bytes.empty());
      loop.stop();
    });
  });
  loop.run();
  //= LIM-1
  EXPECT_LE(bytes + limits::kEnvelopeBytesMax, limits::kFrameBytesLeast);
}

}  // namespace
}  // namespace windlass
