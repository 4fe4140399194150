// Which version of an application serves, and what is known of applications that are not here.
#include "tests/unit/runtime/core/core_bench.h"

namespace windlass::runtime {
namespace {

const JobHostKey kOld{"shop", "m1"};
const JobHostKey kNew{"shop", "m2"};

class AssignedTest : public ::testing::Test {
 protected:
  static RuntimeOptions options() {
    RuntimeOptions options;
    options.awaits_assignments = true;
    return options;
  }
  ChannelId come(const std::string& worker, const JobHostKey& key) {
    bench.app = key;
    return bench.ready(worker);
  }

  CoreBench bench{options()};
};

TEST_F(AssignedTest, NothingServesBeforeTheSchedulerSaidWhat) {
  come("a", kOld);
  EXPECT_TRUE(bench.core.is_awaiting());
  EXPECT_EQ(bench.core.find_job_host("shop"), std::nullopt);
  bench.core.set_assigned({{"shop", {"m1"}}});
  EXPECT_FALSE(bench.core.is_awaiting());
  EXPECT_EQ(bench.core.find_job_host("shop"), kOld);
}

TEST_F(AssignedTest, TheAssignedVersionServesWhoeverCameFirst) {
  bench.core.set_assigned({{"shop", {"m2"}}});
  come("a", kOld);
  EXPECT_EQ(bench.core.find_job_host("shop"), std::nullopt) << "the old one does not stand in";
  EXPECT_EQ(bench.core.absent_applications(), std::vector<std::string>{"shop"});
  come("b", kNew);
  EXPECT_EQ(bench.core.find_job_host("shop"), kNew);
  EXPECT_TRUE(bench.core.absent_applications().empty());
  come("c", kOld);
  EXPECT_EQ(bench.core.find_job_host("shop"), kNew);
}

TEST_F(AssignedTest, AnApplicationThatIsNotAssignedIsNotServed) {
  come("a", kOld);
  bench.core.set_assigned({});
  EXPECT_EQ(bench.core.find_job_host("shop"), std::nullopt);
  EXPECT_FALSE(bench.core.is_assigned("shop"));
  EXPECT_TRUE(bench.core.absent_applications().empty());
}

TEST_F(AssignedTest, NobodyIsAwaitedWhereTheSchedulerSaysSo) {
  EXPECT_TRUE(bench.core.awaits_worker_of("shop"));
  bench.core.set_assigned({{"shop", {"m1"}}, {"farm", {"m1", false}}});
  EXPECT_TRUE(bench.core.awaits_worker_of("shop"));
  EXPECT_FALSE(bench.core.awaits_worker_of("farm"));
}

TEST_F(AssignedTest, CallersWaitForTheNextWorkerOfWhatIsAssigned) {
  bench.core.set_assigned({{"shop", {"m1"}}});
  const ChannelId channel = come("a", kOld);
  bench.end(channel, ChannelEnd::Closed);
  bench.advance(seconds{1});
  EXPECT_EQ(bench.core.find_job_host("shop"), kOld) << "its routes are still known";
  ASSERT_TRUE(bench.submit("meanwhile"));
  const ChannelId next = come("b", kOld);
  bench.respond(next, "meanwhile");
  EXPECT_EQ(bench.outcome("meanwhile")->settlement, Settlement::Complete);
}

}  // namespace
}  // namespace windlass::runtime
