#include "runtime/adapters/function_json.h"

#include <gtest/gtest.h>

namespace windlass::runtime {
namespace {

const std::string kQueue =
    R"({"bindings":[{"name":"m","type":"queueTrigger","direction":"in","queueName":"q"}]})";

TEST(FunctionJson, ReadsAFunctionWithItsPlace) {
  const FunctionRef function = read_function_json("orders",
                                                  R"({"scriptFile":"../dist/orders.js","entryPoint":"run",
          "retry":{"strategy":"fixedDelay","maxRetryCount":4,"delayInterval":"00:00:10"},
          "bindings":[{"name":"m","type":"queueTrigger","direction":"in"},{"name":"o","type":"strange","direction":"out"}]})",
                                                  {"/app", "node"});
  EXPECT_TRUE(function->status.is_ok()) << function->status.reason;
  EXPECT_EQ(function->script_file, "/app/dist/orders.js");
  EXPECT_EQ(function->directory, "/app/orders");
  EXPECT_EQ(function->entry_point, "run");
  EXPECT_EQ(function->retry.retries_max, 4);
  EXPECT_EQ(function->retry.delay, seconds{10});
  ASSERT_EQ(function->bindings.size(), 2U);
  EXPECT_EQ(function->bindings[1].type, "strange");
  EXPECT_FALSE(function->metadata.empty());
}

TEST(FunctionJson, SaysThatAFunctionMayRunAgain) {
  const auto is_idempotent = [](const std::string& more) {
    const std::string text =
        R"({"bindings":[{"name":"m","type":"queueTrigger","direction":"in"}])" + more + "}";
    return read_function_json("f", text, {"/app", "node"})->is_idempotent;
  };
  EXPECT_TRUE(is_idempotent(R"(,"windlass.idempotent":true)"));
  EXPECT_FALSE(is_idempotent(R"(,"windlass.idempotent":false)"));
  EXPECT_FALSE(is_idempotent(R"(,"windlass.idempotent":"true")"));
  EXPECT_FALSE(is_idempotent(""));
}

TEST(FunctionJson, SaysWhatIsWrongWithAFunctionAndKeepsIt) {
  const auto reason = [](const std::string& text) {
    return read_function_json("f", text, {"/app", "node"})->status.reason;
  };
  EXPECT_NE(reason(R"({"bindings":[{"name":"m","type":"teapotTrigger"}]})").find("teapotTrigger"),
            std::string::npos);
  EXPECT_NE(reason(R"({"bindings":[{"name":"m","type":"http","direction":"out"}]})").find("no trigger"),
            std::string::npos);
  EXPECT_NE(reason(R"({"bindings":[{"name":"m"}]})").find("no type"), std::string::npos);
  EXPECT_NE(reason(R"({"bindings":[{"type":"queueTrigger"},{"type":"timerTrigger"}]})").find("two triggers"),
            std::string::npos);
  EXPECT_NE(reason(R"({})").find("bindings"), std::string::npos);
  EXPECT_NE(reason("[]").find("no JSON object"), std::string::npos);
  EXPECT_NE(reason("{").find("f/function.json"), std::string::npos);
  EXPECT_EQ(reason(kQueue), "");
}

TEST(FunctionJson, NamesThatDifferInCaseOnlyAreRefusedAndBothNamed) {
  const auto functions =
      read_function_jsons({{"Order", kQueue}, {"order", kQueue}, {"other", kQueue}}, {"/app", "node"});
  ASSERT_EQ(functions.size(), 3U);
  EXPECT_TRUE(functions[0]->status.is_ok());
  EXPECT_NE(functions[1]->status.reason.find("'Order' and 'order'"), std::string::npos);
  EXPECT_TRUE(functions[2]->status.is_ok());
}

TEST(FunctionJson, ASettingSwitchesAFunctionOff) {
  const TextMap settings{{"AzureWebJobs.f.Disabled", "True"}, {"OFF", "1"}};
  EXPECT_TRUE(read_function_json("f", kQueue, {"/app", "node", &settings})->is_disabled);
  EXPECT_FALSE(read_function_json("g", kQueue, {"/app", "node", &settings})->is_disabled);
  const std::string by_name = R"({"disabled":"OFF","bindings":[{"name":"m","type":"queueTrigger"}]})";
  EXPECT_TRUE(read_function_json("g", by_name, {"/app", "node", &settings})->is_disabled);
}

TEST(HostJson, GivesRoutePrefixAndTimeout) {
  EXPECT_EQ(read_host_json("")->route_prefix, "api");
  const auto settings = read_host_json(
      R"({"version":"2.0","functionTimeout":"00:05:30","extensions":{"http":{"routePrefix":"/v1/x/"}}})");
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->route_prefix, "v1/x");
  EXPECT_EQ(settings->function_timeout, seconds{330});
  EXPECT_EQ(read_host_json(R"({"extensions":{"http":{"routePrefix":""}}})")->route_prefix, "");
  EXPECT_FALSE(read_host_json(R"({"functionTimeout":"soon"})"));
  for (const char* endless : {"00:00:1e300", "00:00:inf", "00:00:nan", "00:2000000000:00", "99999:00:00"}) {
    EXPECT_FALSE(read_host_json(R"({"functionTimeout":")" + std::string{endless} + R"("})")) << endless;
  }
  EXPECT_FALSE(read_host_json("[]"));
}

TEST(HttpTrigger, IsReadFromItsBinding) {
  const auto trigger = read_http_trigger(
      {"req", "httpTrigger", "in",
       R"({"type":"httpTrigger","route":"o/{id}","methods":["get","Post"],"authLevel":"ANONYMOUS"})"});
  ASSERT_TRUE(trigger);
  EXPECT_EQ(trigger->route, "o/{id}");
  EXPECT_EQ(trigger->methods, (std::vector<std::string>{"GET", "POST"}));
  EXPECT_EQ(trigger->level, AuthLevel::Anonymous);
  EXPECT_FALSE(read_http_trigger({"req", "httpTrigger", "in", R"({"methods":[1]})"}));
}

TEST(HostJson, SaysFromWhichLevelOnLogsAreWritten) {
  const auto settings =
      read_host_json(R"({"logging":{"logLevel":{"default":"Warning","Function.loud.User":"Debug"}}})");
  ASSERT_TRUE(settings);
  Log log;
  EXPECT_FALSE(settings->log_levels.takes(log, "quiet"));
  EXPECT_TRUE(settings->log_levels.takes(log, "loud"));
  EXPECT_TRUE(settings->warnings.empty());
}

TEST(HostJson, AnUnknownLevelCostsNothingButThatLevel) {
  const auto settings = read_host_json(
      R"({"extensions":{"http":{"routePrefix":"v1"}},"functionTimeout":"00:05:30","idempotent":true,)"
      R"("logging":{"logLevel":{"default":"Info","Host":3,"Function.loud":"Error"}}})");
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->route_prefix, "v1");
  EXPECT_EQ(settings->function_timeout, seconds{330});
  EXPECT_TRUE(settings->is_idempotent);
  Log log;
  EXPECT_TRUE(settings->log_levels.takes(log, "quiet"));
  EXPECT_FALSE(settings->log_levels.takes(log, "loud"));
  ASSERT_EQ(settings->warnings.size(), 1U);
  EXPECT_NE(settings->warnings[0].find("default=Info, Host=3; known are Trace,"), std::string::npos)
      << settings->warnings[0];
}

TEST(FunctionJson, RefusesARouteThatNobodyCouldMatch) {
  const auto function = read_function_json(
      "f",
      R"({"bindings":[{"type":"httpTrigger","direction":"in","name":"req","route":"f/{id:regex((?=a))}"}]})",
      {});
  EXPECT_FALSE(function->status.is_ok());
  EXPECT_NE(function->status.reason.find("'f' is not served: the route part"), std::string::npos)
      << function->status.reason;
}

}  // namespace
}  // namespace windlass::runtime
