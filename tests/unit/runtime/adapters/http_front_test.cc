#include "runtime/adapters/http_front.h"

#include <gtest/gtest.h>

#include "protocol/base/limits.h"
#include "schema/proto/function_rpc.pb.h"

namespace windlass::runtime {
namespace {

class FakeFrontHost final : public HttpFrontHost {
 public:
  std::vector<Application> http_applications() override {
    Application shop{{"shop", "m1"}, "api", {}};
    for (const char* level : {"anonymous", "function"}) {
      Function function;
      function.name = level;
      function.bindings.push_back({"req", "httpTrigger", "in",
                                   R"({"methods":["post"],"authLevel":")" + std::string{level} + R"("})"});
      shop.functions.push_back(std::make_shared<const Function>(std::move(function)));
    }
    Application bank = shop;
    bank.key.application_id = "bank";
    if (!is_shop_here) return {};
    if (!patterned.empty()) shop.functions = patterned;
    if (is_bank_here && !has_greedy) return {bank, shop};
    if (!has_greedy) return {shop};
    Function all;
    all.name = "all";
    all.bindings.push_back(
        {"req", "httpTrigger", "in", R"({"methods":["post"],"authLevel":"anonymous","route":"{*rest}"})"});
    return {shop, {{"greedy", "m1"}, "", {std::make_shared<const Function>(std::move(all))}}};
  }
  std::vector<Absent> http_absent() override { return absent; }
  bool http_awaits() override { return is_awaiting; }
  bool http_has_unseen() override { return has_unseen; }
  const TextMap* http_capabilities(const JobHostKey& /*key*/) override { return nullptr; }
  Result<Done> http_ready() override { return ready; }
  Result<InvocationId> http_invoke(Call call, std::function<void(const Outcome&)> when_done) override {
    calls.push_back(std::move(call));
    done.push_back(std::move(when_done));
    return InvocationId{"i-" + std::to_string(calls.size())};
  }
  void http_cancel(const InvocationId& invocation) override { cancelled.push_back(invocation.value()); }
  void http_answered(std::uint16_t status) override { answered.push_back(status); }
  void stream_send(const InvocationId& /*invocation*/, std::string message) override {
    sent.push_back(std::move(message));
  }
  void stream_over(const InvocationId& invocation, bool is_cancelled) override {
    if (is_cancelled) cancelled.push_back(invocation.value());
  }

  bool is_shop_here = true;
  std::vector<FunctionRef> patterned;  // instead of the shop's
  bool is_bank_here = false;           // it has the same routes
  bool has_unseen = false;
  std::vector<Absent> absent;
  bool is_awaiting = false;
  bool has_greedy = false;  // an application with a route that takes every path
  Result<Done> ready = Done{};
  std::vector<std::string> sent;
  std::vector<Call> calls;
  std::vector<std::function<void(const Outcome&)>> done;
  std::vector<std::string> cancelled;
  std::vector<std::uint16_t> answered;
};

class HttpFrontTest : public ::testing::Test {
 protected:
  static HttpRequest asking(const std::string& target, TextPairs headers = {}) {
    headers.emplace_back("Host", "localhost");
    HttpRequest request;
    request.id = 7;
    request.method = "POST";
    request.target = target;
    request.headers = std::move(headers);
    return request;
  }
  // 0: it waits for its function.
  int handle(const HttpRequest& request) {
    int status = 0;
    front.handle(request, [&](const HttpResponse& response) { status = response.status; });
    return status;
  }
  int refused(const HttpRequest& request) {
    const auto response = front.refuse(request);
    return response ? int{response->status} : 0;
  }
  AzureFunctionsRpcMessages::RpcHttp called() const {
    AzureFunctionsRpcMessages::InvocationRequest request;
    EXPECT_TRUE(request.ParseFromString(*host.calls.back().body));
    return request.input_data(0).data().http();
  }

  FakeFrontHost host;
  HttpFront front{{.keys = {.everywhere = {.host = {sha256("secret")}}}}, host, 1};
};

TEST_F(HttpFrontTest, GivesNobodyElseWhatNamesAnApplication) {
  host.has_greedy = true;
  front.handle_changed();
  EXPECT_EQ(handle(asking("/shop/api/no-such-function")), 404);
  EXPECT_TRUE(host.calls.empty()) << "the application that takes every path got it";
  EXPECT_EQ(handle(asking("/greedy/anything")), 0);
  EXPECT_EQ(handle(asking("/anything")), 0) << "it alone knows the path";
}

TEST_F(HttpFrontTest, GivesAnAbsentApplicationsPathsToNobodyElse) {
  host.is_bank_here = true;
  EXPECT_EQ(handle(asking("/bank/api/anonymous")), 0);
  EXPECT_EQ(handle(asking("/api/anonymous")), 404) << "two know it";
  host.is_bank_here = false;
  host.absent = {{"Bank", true}};
  front.handle_changed();
  EXPECT_EQ(handle(asking("/api/anonymous")), 503) << "it was the bank's, too";
  EXPECT_EQ(handle(asking("/bank/api/anonymous")), 503);
  EXPECT_EQ(handle(asking("/shop/api/anonymous")), 0);
  front.handle_changed();
  EXPECT_EQ(handle(asking("/api/anonymous")), 503) << "its routes are still known";
  host.absent = {};
  front.handle_changed();
  EXPECT_EQ(handle(asking("/api/anonymous")), 0) << "it is not to be served here any more";
  EXPECT_EQ(host.calls.back().job_host.application_id, "shop");
}

TEST_F(HttpFrontTest, RemembersTheRoutesOfWhoeverCameEvenIfNobodyAsked) {
  host.is_bank_here = true;
  front.handle_came();
  host.is_bank_here = false;
  host.absent = {{"bank", true}};
  front.handle_changed();
  EXPECT_EQ(handle(asking("/api/anonymous")), 503);
}

TEST_F(HttpFrontTest, APathIsNobodysWhileAnApplicationIsUnseen) {
  host.absent = {{"bank", true}};
  host.has_unseen = true;
  EXPECT_EQ(handle(asking("/api/anonymous")), 503) << "it may be the bank's";
  EXPECT_EQ(handle(asking("/shop/api/anonymous")), 0);
  host.has_unseen = false;
  front.handle_changed();
  EXPECT_EQ(handle(asking("/api/anonymous")), 0);
}

TEST_F(HttpFrontTest, TheRegularExpressionsOfAnApplicationAreBounded) {
  for (std::size_t i = 0; i <= HttpFront::kPatternsMax; ++i) {
    Function function;
    function.name = "f" + std::to_string(i);
    function.bindings.push_back(
        {"req", "httpTrigger", "in",
         R"({"authLevel":"anonymous","route":")" + function.name + R"(/{x:regex(^a)}"})"});
    host.patterned.push_back(std::make_shared<const Function>(std::move(function)));
  }
  for (int i = 0; i < 2; ++i) {
    front.handle_changed();
    EXPECT_EQ(front.poll_problems().size(), i == 0 ? 1U : 0U) << "said once";
    EXPECT_EQ(handle(asking("/api/f0/ab")), 0);
    EXPECT_EQ(handle(asking("/api/f0/b")), 404);
    EXPECT_EQ(handle(asking("/api/f64/ab")), 404);
  }
}

TEST_F(HttpFrontTest, SaysWhyAPathOfTwoApplicationsIsNobodysAndNamesNone) {
  host.is_bank_here = true;
  std::string body;
  front.handle(asking("/api/anonymous"), [&](const HttpResponse& response) { body = response.body; });
  EXPECT_NE(body.find("several applications"), std::string::npos) << body;
  EXPECT_EQ(body.find("bank"), std::string::npos) << body;
  EXPECT_EQ(body.find("shop"), std::string::npos) << body;
}

TEST_F(HttpFrontTest, TakesNamedRequestsOnlyWhereItIsToldTo) {
  HttpFront named_only{{.keys = {}, .takes_named_only = true}, host, 1};
  int status = 0;
  const auto answer = [&](const HttpResponse& response) { status = response.status; };
  named_only.handle(asking("/api/anonymous"), answer);
  EXPECT_EQ(status, 404);
  EXPECT_TRUE(host.calls.empty());
  named_only.handle(asking("/shop/api/anonymous"), answer);
  EXPECT_EQ(host.calls.size(), 1U);
  host.absent = {{"bank", true}};
  host.has_unseen = true;
  for (const bool is_shop_here : {true, false}) {
    host.is_shop_here = is_shop_here;
    named_only.handle_changed();
    named_only.handle(asking("/api/anonymous"), answer);
    EXPECT_EQ(status, 404) << "nobody who comes could serve it";
    named_only.handle(asking("/bank/api/anonymous"), answer);
    EXPECT_EQ(status, 503);
  }
  host.is_awaiting = true;
  named_only.handle_changed();
  named_only.handle(asking("/shop/api/anonymous"), answer);
  EXPECT_EQ(status, 503) << "its first segment may be a name";
}

TEST_F(HttpFrontTest, RefusesByTheHeadAlone) {
  EXPECT_EQ(refused(asking("/api/nowhere")), 404);
  EXPECT_EQ(refused(asking("/api/function")), 401);
  EXPECT_EQ(refused(asking("/api/%zz")), 400);
  EXPECT_EQ(refused(asking("/api/anonymous?" + std::string(2 * limits::kHttpQueryPairsMax + 1, '&') + "a")),
            0);
  std::string pairs;
  for (std::size_t i = 0; i <= limits::kHttpQueryPairsMax; ++i) pairs += "a&";
  EXPECT_EQ(refused(asking("/api/anonymous?" + pairs)), 400);
  EXPECT_EQ(refused(asking("/api/function", {{"X-Functions-Key", "secret"}})), 0);
  EXPECT_EQ(refused(asking("/api/function?code=secret")), 0);
  EXPECT_EQ(refused(asking("/api/function?code=secret", {{"X-Functions-Key", "wrong"}})), 401);
  host.ready = Error{ErrorCode::SessionDraining, Blame::Local, "stops"};
  EXPECT_EQ(refused(asking("/api/anonymous")), 503);
  EXPECT_EQ(host.answered, (std::vector<std::uint16_t>{404, 401, 400, 400, 401, 503}));
  EXPECT_TRUE(host.calls.empty());
}

TEST_F(HttpFrontTest, KeepsItsKeyFromTheFunction) {
  EXPECT_EQ(handle(asking("/api/function?a=1&code=secret&b=2", {{"x-functions-key", "secret"}})), 0);
  EXPECT_EQ(called().url(), "http://localhost/api/function?a=1&b=2");
  EXPECT_EQ(called().query().count("code"), 0U);
  EXPECT_EQ(called().headers().count("x-functions-key"), 0U);
  EXPECT_EQ(host.calls.back().body->find("secret"), std::string::npos);
  EXPECT_EQ(handle(asking("/api/function?code=secret")), 0);
  EXPECT_EQ(called().url(), "http://localhost/api/function");
}

TEST_F(HttpFrontTest, GivesACodeThatIsNotItsKeyToTheFunction) {
  EXPECT_EQ(handle(asking("/api/anonymous?code=of-a-login")), 0);
  EXPECT_EQ(called().url(), "http://localhost/api/anonymous?code=of-a-login");
  EXPECT_EQ(called().query().at("code"), "of-a-login");
}

TEST_F(HttpFrontTest, CancelsWhatNobodyWaitsFor) {
  EXPECT_EQ(handle(asking("/api/anonymous")), 0);
  front.handle_gone(8);
  EXPECT_TRUE(host.cancelled.empty()) << "another request";
  front.handle_gone(7);
  EXPECT_EQ(host.cancelled, (std::vector<std::string>{"i-1"}));
}

TEST_F(HttpFrontTest, SaysWhyAnInvocationFailedWithACodeOfTheErrorList) {
  const std::vector<std::pair<Cause, std::string>> codes{
      {Cause::FunctionFailed, "E.INVOCATION.FUNCTION_FAILED"},
      {Cause::WorkerLost, "E.INVOCATION.WORKER_LOST"},
      {Cause::JobHostFailed, "E.INVOCATION.JOB_HOST_FAILED"},
      {Cause::TooLarge, "E.INVOCATION.TOO_LARGE"},
      {Cause::Overloaded, "E.INVOCATION.OVERLOADED"},
      {Cause::Stopping, "E.INVOCATION.STOPPING"}};
  for (const auto& [cause, code] : codes) {
    std::string body;
    front.handle(asking("/api/anonymous"), [&](const HttpResponse& response) { body = response.body; });
    Outcome outcome;
    outcome.settlement = Settlement::Abandon;
    outcome.cause = cause;
    host.done.back()(outcome);
    EXPECT_NE(body.find("\"code\":\"" + code + "\""), std::string::npos) << body;
  }
}

TEST_F(HttpFrontTest, SaysTrulyWhetherAnybodyIsAwaited) {
  host.absent = {{"Coming", true}, {"alone", false}};
  const auto said = [&](const std::string& target) {
    std::string text;
    front.handle(asking(target), [&](const HttpResponse& response) {
      text = std::to_string(response.status) + " " + response.body;
      if (response.status == 503) {
        EXPECT_EQ(header_of(response.headers, "retry-after"), "1");
      }
    });
    return text;
  };
  EXPECT_NE(said("/coming/api/x").find("are assigned and not back yet"), std::string::npos);
  EXPECT_NE(said("/alone/api/x").find("the application has no worker at the moment"), std::string::npos);
  EXPECT_NE(said("/api/x").find("may belong to an application whose workers are assigned"),
            std::string::npos);
  EXPECT_TRUE(said("/shop/api/x").starts_with("404"));
  host.absent = {{"alone", false}};
  front.handle_changed();
  EXPECT_NE(said("/api/x").find("an application that has no worker at the moment"), std::string::npos);
  host.absent.clear();
  host.is_awaiting = true;
  front.handle_changed();
  EXPECT_NE(said("/api/x").find("the scheduler has not said yet"), std::string::npos);
  host.is_awaiting = false;
  front.handle_changed();
  EXPECT_TRUE(said("/api/x").starts_with("404"));
}

TEST_F(HttpFrontTest, CancelsNothingThatIsOver) {
  int status = 0;
  front.handle(asking("/api/anonymous"), [&](const HttpResponse& response) { status = response.status; });
  Outcome outcome;
  outcome.settlement = Settlement::Abandon;
  outcome.cause = Cause::TimedOut;
  host.done[0](outcome);
  EXPECT_EQ(status, 504);
  front.handle_gone(7);
  EXPECT_TRUE(host.cancelled.empty());
}

}  // namespace
}  // namespace windlass::runtime
