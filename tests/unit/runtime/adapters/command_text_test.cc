#include "runtime/adapters/command_text.h"

#include <gtest/gtest.h>

#include "runtime/adapters/status_text.h"

namespace windlass::runtime {
namespace {

TEST(CommandText, AnInvocationNamesItsFunctionAndCarriesJsonOrText) {
  const auto json = read_invoke_command(
      R"({"application_id":"shop","function":"work","data":{"a": [1, 2]},"timeout_ms":1500})");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->application_id, "shop");
  EXPECT_EQ(json->function, "work");
  EXPECT_EQ(json->data.kind, Datum::Kind::Json);
  EXPECT_EQ(json->data.value, R"({"a":[1,2]})");
  EXPECT_EQ(json->timeout, Duration{milliseconds{1500}});
  const auto text = read_invoke_command(R"({"application_id":"shop","function":"work","text":"hi"})");
  ASSERT_TRUE(text);
  EXPECT_EQ(text->data.kind, Datum::Kind::Text);
  EXPECT_EQ(text->data.value, "hi");
  EXPECT_FALSE(text->timeout);
  EXPECT_EQ(text->sticky_key, "");
}

TEST(CommandText, AnInvocationMayCarryAKeyAndATrace) {
  const auto command = read_invoke_command(
      R"({"application_id":"a","function":"f","sticky_key":"cart-7","traceparent":"00-abc"})");
  ASSERT_TRUE(command);
  EXPECT_EQ(command->sticky_key, "cart-7");
  EXPECT_EQ(command->trace_parent, "00-abc");
  EXPECT_FALSE(read_invoke_command(R"({"application_id":"a","function":"f","sticky_key":")" +
                                   std::string(257, 'k') + R"("})"));
}

TEST(CommandText, AssignedApplicationsSayWhetherAWorkerIsToCome) {
  const auto read =
      read_assigned_applications(R"({"applications":[{"application_id":"shop","metadata_version":"m1"},)"
                                 R"({"application_id":"farm","awaited":false}]})");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->at("shop").metadata_version, "m1");
  EXPECT_TRUE(read->at("shop").is_awaited);
  EXPECT_FALSE(read->at("farm").is_awaited);
}

TEST(CommandText, AWrongOrderIsRefusedWithTheMemberThatIsWrong) {
  for (const auto& [payload, word] : std::vector<std::pair<std::string, std::string>>{
           {"[]", "object"},
           {"{}", "application_id"},
           {R"({"application_id":"a","function":7})", "function must be text"},
           {R"({"application_id":"a","function":"f","timeout_ms":0})", "timeout_ms"}}) {
    const auto command = read_invoke_command(payload);
    ASSERT_FALSE(command) << payload;
    EXPECT_EQ(command.error().code, ErrorCode::ProtoSchema);
    EXPECT_NE(command.error().reason.find(word), std::string::npos) << command.error().reason;
  }
  EXPECT_FALSE(read_split_command(R"({"application_id":"a","weights":{"v1":-1}})"));
  EXPECT_FALSE(read_split_command(R"({"weights":{"v1":1}})"));
  EXPECT_FALSE(read_drain_worker_command("{}"));
}

TEST(CommandText, ASplitKeepsItsWeights) {
  const auto split =
      read_split_command(R"({"application_id":"a","metadata_version":"m","weights":{"v1":80,"v2":20}})");
  ASSERT_TRUE(split);
  EXPECT_EQ(split->metadata_version, "m");
  ASSERT_EQ(split->weights.size(), 2U);
  EXPECT_EQ(split->weights[0], (std::pair<std::string, std::uint32_t>{"v1", 80}));
}

TEST(CommandText, AFailureIsToldWithCodeCauseAndWhatTheFunctionSaid) {
  Outcome outcome;
  outcome.settlement = Settlement::Abandon;
  outcome.cause = Cause::TimedOut;
  outcome.reason = "it took \"too\" long";
  outcome.worker = WorkerId{"w-1"};
  EXPECT_EQ(outcome_result(outcome, {"one", "two"}, 1024),
            R"({"ok":false,"code":"E.TIMEOUT","reason":"it took \"too\" long","cause":"timed_out",)"
            R"("logs":["one","two"],"took_ms":0,"worker":"w-1"})");
}

TEST(CommandText, AResultThatNoMessageCanCarryIsRefusedInItsPlace) {
  const std::string text = outcome_result(Outcome{}, {std::string(4096, 'x')}, 1024);
  EXPECT_NE(text.find("E.LIMIT.FRAME"), std::string::npos) << text;
  EXPECT_LT(text.size(), 1024U);
}

TEST(StatusText, HealthHasEveryField) {
  RuntimeHealth health;
  health.level = RuntimeHealth::Level::Degraded;
  health.reason = "memory";
  health.total_workers = 3;
  EXPECT_EQ(
      health_text(health, true),
      R"({"status":"Degraded","reason":"memory","grpc_server":"listening","total_workers":3,)"
      R"("ready_workers":0,"placeholders":0,"detached_workers":0,"active_jobhosts":0,"memory_utilization":0,"pending_invocations":0})");
}

}  // namespace
}  // namespace windlass::runtime
