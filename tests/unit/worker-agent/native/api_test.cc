// The pure parts of the API for functions: what is registered, how it is described, and the little JSON.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "worker-agent/native/include/windlass/function.h"
#include "worker-agent/native/include/windlass/json.h"
#include "worker-agent/native/metadata.h"

namespace windlass::native {
namespace {

class Kept final : public Registry {
 public:
  void add(Function function) override { functions.push_back(std::move(function)); }
  std::vector<Function> functions;
};

TEST(FunctionApi, DescribesBindingsAsFunctionJsonDoes) {
  Kept kept;
  App app(kept);
  app.service_bus_queue("bus", {.queue = "b\"q", .connection = "BUS", .batch = true},
                        [](const Event&, Context&) {});
  ASSERT_EQ(kept.functions.size(), 1U);
  EXPECT_EQ(fault_of(kept.functions[0]), std::nullopt);
  EXPECT_EQ(
      raw_binding(kept.functions[0].bindings[0]),
      R"({"type":"serviceBusTrigger","name":"event","direction":"in","queueName":"b\"q","connection":"BUS",)"
      R"("cardinality":"many","isSessionsEnabled":false})");
}

TEST(FunctionApi, NamesTheFaultOfAFunction) {
  const Binding trigger{"queueTrigger", "event", Binding::Direction::In, {}};
  const Handler handler = [](const Event&, Context&) { return Value(); };
  EXPECT_TRUE(fault_of({"1st", {trigger}, {}, handler}).has_value());
  EXPECT_TRUE(fault_of({"no_handler", {trigger}, {}, nullptr}).has_value());
  EXPECT_TRUE(fault_of({"no_trigger", {}, {}, handler}).has_value());
  EXPECT_TRUE(fault_of({"two_triggers", {trigger, trigger}, {}, handler}).has_value());
  EXPECT_TRUE(fault_of({"same_names", {trigger, queue_output("event", "q")}, {}, handler}).has_value());
  EXPECT_TRUE(fault_of({"retry", {trigger}, Retry::fixed(-2, std::chrono::seconds(1)), handler}).has_value());
  EXPECT_FALSE(fault_of({"fine", {trigger, queue_output("out", "q")}, {}, handler}).has_value());
}

TEST(FunctionJson, ReadsWhatIsJsonAndNothingElse) {
  const Json value = Json::parse(R"( {"a":[1,-2.5e1,"\u00e9\ud83d\ude00\n"],"b":{"c":true},"d":null} )");
  EXPECT_EQ(value["a"][std::size_t{1}].number(0), -25);
  EXPECT_EQ(value["a"][std::size_t{2}].string(""), "\xc3\xa9\xf0\x9f\x98\x80\n");
  EXPECT_TRUE(value["b"]["c"].boolean(false));
  EXPECT_TRUE(value["d"].is_null());
  EXPECT_EQ(value["none"]["deeper"].number(7), 7);
  for (const char* text : {"", "{", "[1,]", "01", "1.", "nul", "\"\\x\"", "\"\\ud800\"", "{\"a\" 1}", "1 2",
                           "\"\n\"", "+1", "inf"}) {
    EXPECT_THROW(Json::parse(text), JsonError) << text;
  }
  EXPECT_THROW(Json::parse(std::string(100000, '[')), JsonError);
}

TEST(FunctionJson, WritesTextThatReadsBack) {
  const std::string odd = "a\"b\\c\n\x01 \xc3\xa9";
  EXPECT_EQ(Json::parse(json_quote(odd)).string(""), odd);
  EXPECT_EQ(json_number(0.1), "0.1");
  EXPECT_EQ(json_number(11), "11");
}

}  // namespace
}  // namespace windlass::native
