// How an application's traffic is shared: kept by the scheduler, because runtimes forget it.
#include <map>

#include "tests/unit/scheduler/core/apps_fixture.h"

namespace windlass {
namespace {

constexpr std::string_view kServes =
    R"({"url":"wss://r1","health":"Healthy","applications":[)"
    R"({"application_id":"hello","metadata_version":"m","functions":["f"],"workers":2}]})";

class SplitTest : public AppsTest {
 protected:
  RequestId split(std::map<std::string, std::uint64_t> weights) {
    const RequestId request{++next_request_};
    core_->handle(SplitApp{request, kAcme, "hello", std::move(weights)}, now_);
    return request;
  }
  // What a runtime is told when it says that it serves the application.
  std::vector<std::string> told(std::string_view runtime = "r1", std::string_view status = kServes) {
    const SessionRef session = open_runtime(status, runtime);
    std::vector<std::string> payloads;
    for (const Send& send : settle().sends) {
      payloads.emplace_back(send.message.payload());
      deliver_result(session, send.message.id());
    }
    return payloads;
  }
};

TEST_F(SplitTest, IsToldToEveryRuntimeThatComesToServeTheApplication) {
  begin();
  deploy(app("v2", std::string(64, 'b')));
  const RequestId request = split({{"v1", 80}, {"v2", 20}});
  EXPECT_EQ(refusal(settle(), request), std::nullopt);
  restart();
  const std::vector<std::string> wanted{
      R"({"application_id":"hello","metadata_version":"m","weights":{"v1":80,"v2":20}})"};
  EXPECT_EQ(told("r1", kRuntimeStatus), std::vector<std::string>{}) << "it does not serve it";
  EXPECT_EQ(told("r1"), wanted);
  EXPECT_EQ(told("r2"), wanted);
  EXPECT_EQ(told("r1"), wanted) << "it may be a new process";
}

TEST_F(SplitTest, IsToldOnceInASession) {
  begin();
  split({{"v1", 1}});
  settle();
  const SessionRef session = open_runtime(kServes);
  EXPECT_EQ(settle().sends.size(), 1U);
  runtime_status(session, kServes);
  EXPECT_TRUE(settle().sends.empty());
  runtime_status(session, kRuntimeStatus);
  runtime_status(session, kServes);
  EXPECT_EQ(settle().sends.size(), 1U) << "it lost the application and took it again";
}

TEST_F(SplitTest, OutlivesANewDeploymentAndIsReplacedWhole) {
  begin();
  deploy(app("v2", std::string(64, 'b')));
  split({{"v1", 80}, {"v2", 20}});
  settle();
  deploy(app());
  split({{"v2", 1}});
  settle();
  EXPECT_EQ(
      told(),
      (std::vector<std::string>{R"({"application_id":"hello","metadata_version":"m","weights":{"v2":1}})"}));
}

TEST_F(SplitTest, IsBetweenVersionsThatShareTheirMetadata) {
  begin();
  AppRecord other = app("v2", std::string(64, 'b'));
  other.metadata_version = "n";
  deploy(other);
  settle();
  const RequestId both = split({{"v1", 1}, {"v2", 1}});
  EXPECT_EQ(refusal(settle(), both), ErrorCode::ProtoSchema);
  const RequestId unknown = split({{"v9", 1}});
  EXPECT_EQ(refusal(settle(), unknown), ErrorCode::CmdUnknown);
  const RequestId nothing = split({{"v1", 0}});
  EXPECT_EQ(refusal(settle(), nothing), ErrorCode::ProtoSchema);
}

}  // namespace
}  // namespace windlass
