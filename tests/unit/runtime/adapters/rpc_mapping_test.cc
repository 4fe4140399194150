// Both directions of the mapping, held against generated types.
#include "runtime/adapters/rpc_mapping.h"

#include <gtest/gtest.h>

#include <limits>

#include "protocol/rpc_parse/rpc_parse.h"
#include "runtime/adapters/rpc_values.h"
#include "runtime/adapters/trace_context.h"
#include "schema/proto/function_rpc.pb.h"

namespace windlass::runtime {
namespace {

namespace wire = AzureFunctionsRpcMessages;

template <class Message>
Message read(const wire::StreamingMessage& sent) {
  Result<WorkerMessage> message = read_worker_message(sent.SerializeAsString());
  EXPECT_TRUE(message) << message.error().reason;
  if (!message || !std::holds_alternative<Message>(*message)) {
    ADD_FAILURE() << "another message";
    return {};
  }
  return std::get<Message>(*std::move(message));
}

wire::StreamingMessage written(const HostMessage& message) {
  wire::StreamingMessage parsed;
  EXPECT_TRUE(parsed.ParseFromString(write_host_message(message)));
  return parsed;
}

TEST(RpcMapping, ReadsWhoAWorkerIs) {
  wire::StreamingMessage sent;
  sent.mutable_start_stream()->set_worker_id("w.1");
  EXPECT_EQ(read<StartStream>(sent).worker.value(), "w.1");
}

TEST(RpcMapping, AMissingResultIsAFailureThatSaysSo) {
  wire::StreamingMessage sent;
  sent.mutable_worker_init_response()->mutable_capabilities()->insert({"WorkerStatus", "true"});
  const auto init = read<InitResponse>(sent);
  EXPECT_FALSE(init.result.is_ok());
  EXPECT_NE(init.result.reason.find("no result"), std::string::npos);
  EXPECT_EQ(init.capabilities.at("WorkerStatus"), "true");
}

TEST(RpcMapping, KeepsTheBodyOfAResponseAsItCame) {
  wire::StreamingMessage sent;
  auto& response = *sent.mutable_invocation_response();
  response.set_invocation_id("i-1");
  response.mutable_return_value()->set_string("a");
  response.mutable_result()->set_status(wire::StatusResult::Success);
  const auto read_back = read<InvocationResponse>(sent);
  EXPECT_EQ(read_back.invocation.value(), "i-1");
  EXPECT_TRUE(read_back.result.is_ok());
  EXPECT_EQ(read_back.body, response.SerializeAsString());

  response.mutable_result()->set_status(wire::StatusResult::Failure);
  response.mutable_result()->mutable_exception()->set_message("boom");
  response.mutable_result()->mutable_exception()->set_stack_trace("at f");
  const auto failed = read<InvocationResponse>(sent);
  EXPECT_EQ(failed.result.status, RpcStatus::Failure);
  EXPECT_EQ(failed.result.reason, "boom");
  EXPECT_EQ(failed.result.stack_trace, "at f");
}

TEST(RpcMapping, RefusesGarbageAndIgnoresWhatItDoesNotKnow) {
  EXPECT_FALSE(read_worker_message("\xff\xff\xff garbage"));
  EXPECT_FALSE(read_worker_message(std::string{"\x2a\x02\xff\xff", 4}));  // an InvocationResponse of garbage
  EXPECT_TRUE(std::holds_alternative<Ignorable>(*read_worker_message("")));
  wire::StreamingMessage sent;
  sent.mutable_worker_heartbeat();
  EXPECT_NE(read<Ignorable>(sent).what.find("15"), std::string::npos);
}

// Half of an emoji, as protobufjs writes it.
constexpr const char* kLoneSurrogate = "A7\xED\xA0\xBD!";
constexpr const char* kMended = "A7\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD!";

TEST(RpcMapping, TextThatIsNotUtf8BecomesReplacementCharacters) {
  wire::StreamingMessage log;
  log.mutable_rpc_log()->set_message(kLoneSurrogate);
  log.mutable_rpc_log()->set_invocation_id("i-1");
  EXPECT_EQ(read<Log>(log).message, kMended);
  EXPECT_EQ(read<Log>(log).invocation.value(), "i-1");

  wire::StreamingMessage init;
  init.mutable_worker_init_response()->mutable_capabilities()->insert({kLoneSurrogate, kLoneSurrogate});
  EXPECT_EQ(read<InitResponse>(init).capabilities.at(kMended), kMended);

  wire::StreamingMessage failed;
  auto& response = *failed.mutable_invocation_response();
  response.set_invocation_id("i-2");
  response.mutable_result()->mutable_exception()->set_message(kLoneSurrogate);
  EXPECT_EQ(read<InvocationResponse>(failed).result.reason, kMended);
}

TEST(RpcMapping, BytesThatAreNoTextStayAsTheyAre) {
  wire::InvocationResponse response;
  auto& output = *response.add_output_data();
  output.set_name(kLoneSurrogate);
  output.mutable_data()->set_bytes(kLoneSurrogate);
  wire::InvocationResponse back;
  ASSERT_TRUE(function_rpc::parse_mended(back, response.SerializeAsString()));
  EXPECT_EQ(back.output_data(0).name(), kMended);
  EXPECT_EQ(back.output_data(0).data().bytes(), kLoneSurrogate);
  EXPECT_FALSE(function_rpc::parse_mended(back, "\xff\xff\xff garbage"));
}

TEST(RpcMapping, AnAnswerWithAResultOfGarbageFailsItsInvocation) {
  // InvocationResponse {invocation_id "i-1", result of garbage}.
  const auto message = read_worker_message(std::string{"\x2a\x09\x0a\x03i-1\x1a\x02\xff\xff", 11});
  ASSERT_TRUE(message);
  const auto& response = std::get<InvocationResponse>(*message);
  EXPECT_EQ(response.invocation.value(), "i-1");
  EXPECT_FALSE(response.result.is_ok());
}

TEST(RpcMapping, ReadsFunctionsWithTheirBindingsAndRetries) {
  wire::StreamingMessage sent;
  auto& response = *sent.mutable_function_metadata_response();
  response.mutable_result()->set_status(wire::StatusResult::Success);
  auto& function = *response.add_function_metadata_results();
  function.set_name("hello");
  function.add_raw_bindings(R"({"name":"q","type":"queueTrigger","direction":"IN","queueName":"in"})");
  function.add_raw_bindings(R"({"name":"o","type":"oddOutput","direction":"out"})");
  function.mutable_retry_options()->set_max_retry_count(3);
  function.mutable_retry_options()->mutable_delay_interval()->set_seconds(2);
  function.mutable_retry_options()->set_retry_strategy(wire::RpcRetryOptions::fixed_delay);
  auto& odd = *response.add_function_metadata_results();
  odd.set_name("odd");
  odd.add_raw_bindings(R"({"name":"t","type":"teapotTrigger","direction":"in"})");
  const auto read_back = read<MetadataResponse>(sent);
  ASSERT_EQ(read_back.functions.size(), 2U);
  const Function& first = *read_back.functions[0];
  EXPECT_TRUE(first.status.is_ok()) << first.status.reason;
  EXPECT_EQ(first.id.value(), "hello");
  ASSERT_EQ(first.bindings.size(), 2U);
  EXPECT_EQ(first.bindings[0].type, "queueTrigger");
  EXPECT_EQ(first.bindings[0].direction, "in");
  EXPECT_EQ(first.bindings[1].type, "oddOutput");
  EXPECT_EQ(first.retry.retries_max, 3);
  EXPECT_EQ(first.retry.delay, seconds{2});
  EXPECT_FALSE(read_back.functions[1]->status.is_ok());
  EXPECT_NE(read_back.functions[1]->status.reason.find("teapotTrigger"), std::string::npos);
}

TEST(RpcMapping, AFunctionSaysByAPropertyThatItMayRunAgain) {
  const auto is_idempotent = [](const char* value) {
    wire::StreamingMessage sent;
    auto& function = *sent.mutable_function_metadata_response()->add_function_metadata_results();
    function.set_name("f");
    function.add_raw_bindings(R"({"name":"q","type":"queueTrigger","direction":"in"})");
    if (value != nullptr) (*function.mutable_properties())["windlass.idempotent"] = value;
    return read<MetadataResponse>(sent).functions.at(0)->is_idempotent;
  };
  EXPECT_TRUE(is_idempotent("true"));
  EXPECT_TRUE(is_idempotent("1"));
  EXPECT_FALSE(is_idempotent("false"));
  EXPECT_FALSE(is_idempotent(nullptr));
}

TEST(RpcMapping, TwoFunctionsOfOneNameFailTheIndexAndBothAreNamed) {
  wire::StreamingMessage sent;
  auto& response = *sent.mutable_function_metadata_response();
  response.mutable_result()->set_status(wire::StatusResult::Success);
  for (const char* file : {"a.js", "b.js"}) {
    auto& function = *response.add_function_metadata_results();
    function.set_name("same");
    function.set_script_file(file);
    function.add_raw_bindings(R"({"name":"q","type":"queueTrigger","direction":"in"})");
  }
  const auto read_back = read<MetadataResponse>(sent);
  EXPECT_FALSE(read_back.result.is_ok());
  EXPECT_NE(read_back.result.reason.find("a.js"), std::string::npos);
  EXPECT_NE(read_back.result.reason.find("b.js"), std::string::npos);
}

TEST(RpcMapping, AnInvocationIsItsBodyWithItsNames) {
  const auto body =
      std::make_shared<const std::string>(write_invocation_body({"q",
                                                                 {Datum::Kind::Json, R"({"a":1})"},
                                                                 {{"DequeueCount", {Datum::Kind::Json, "1"}}},
                                                                 {"00-trace", "state"}}));
  const auto sent = written(InvocationRequest{InvocationId{"i-1"}, FunctionId{"f"}, body, 1, 3, "boom"});
  const auto& request = sent.invocation_request();
  EXPECT_EQ(request.invocation_id(), "i-1");
  EXPECT_EQ(request.function_id(), "f");
  EXPECT_EQ(request.input_data(0).name(), "q");
  EXPECT_EQ(request.input_data(0).data().json(), R"({"a":1})");
  EXPECT_EQ(request.trigger_metadata().at("DequeueCount").json(), "1");
  EXPECT_EQ(request.trace_context().trace_parent(), "00-trace");
  EXPECT_EQ(request.retry_context().retry_count(), 1);
  EXPECT_EQ(request.retry_context().max_retry_count(), 3);
  EXPECT_EQ(request.retry_context().exception().message(), "boom");
  EXPECT_FALSE(written(InvocationRequest{InvocationId{"i"}, FunctionId{"f"}, body})
                   .invocation_request()
                   .has_retry_context());
}

TEST(RpcMapping, WritesEveryOtherMessageOfTheHost) {
  EXPECT_EQ(written(InitRequest{"/app"}).worker_init_request().function_app_directory(), "/app");
  EXPECT_EQ(written(MetadataRequest{"/app"}).functions_metadata_request().function_app_directory(), "/app");
  EXPECT_EQ(written(StatusRequest{"r-7"}).request_id(), "r-7");
  EXPECT_TRUE(written(StatusRequest{"r-7"}).has_worker_status_request());
  EXPECT_TRUE(written(WarmupRequest{}).has_worker_warmup_request());
  EXPECT_EQ(written(Terminate{seconds{5}}).worker_terminate().grace_period().seconds(), 5);
  EXPECT_EQ(written(InvocationCancel{InvocationId{"i"}, {}}).invocation_cancel().invocation_id(), "i");
  const auto reload =
      written(EnvironmentReload{"/app", {{"PATH", "/bin"}}}).function_environment_reload_request();
  EXPECT_EQ(reload.environment_variables().at("PATH"), "/bin");
  const auto refused =
      written(SpecializedResponse{{RpcStatus::Failure, "why"}, "a:1", "c"}).worker_specialized_response();
  EXPECT_EQ(refused.result().status(), wire::StatusResult::Failure);
  EXPECT_EQ(refused.result().exception().message(), "why");
  EXPECT_EQ(refused.correlation_id(), "c");
  auto function = std::make_shared<Function>();
  function->id = FunctionId{"f"};
  wire::RpcFunctionMetadata metadata;
  metadata.set_name("f");
  function->metadata = metadata.SerializeAsString();
  EXPECT_EQ(written(LoadRequest{function}).function_load_request().metadata().name(), "f");
  EXPECT_EQ(written(LoadRequests{{function, function}})
                .function_load_request_collection()
                .function_load_requests_size(),
            2);
}

TEST(RpcValues, AnHttpRequestTakesTheShapeTheWorkerAskedFor) {
  const HttpInput input{.binding = "req",
                        .method = "POST",
                        .url = "http://h/api/x?a=1",
                        .headers = {{"x-a", "1"}, {"x-e", ""}},
                        .query = {{"a", "1"}},
                        .params = {{"id", "7"}},
                        .content_type = "application/json",
                        .body = R"({"b":2})",
                        .trace = {"00-t"}};
  wire::InvocationRequest plain;
  ASSERT_TRUE(plain.ParseFromString(write_http_invocation_body(input, {})));
  const auto& http = plain.input_data(0).data().http();
  EXPECT_EQ(http.headers().at("x-a"), "1");
  EXPECT_EQ(http.params().at("id"), "7");
  EXPECT_EQ(http.body().json(), R"({"b":2})");
  EXPECT_EQ(http.rawbody().string(), R"({"b":2})");
  EXPECT_EQ(plain.trigger_metadata().at("id").string(), "7");
  wire::InvocationRequest modern;
  ASSERT_TRUE(modern.ParseFromString(
      write_http_invocation_body(input, {{"RawHttpBodyBytes", "true"},
                                         {"RpcHttpBodyOnly", "true"},
                                         {"UseNullableValueDictionaryForHttp", "true"},
                                         {"RpcHttpTriggerMetadataRemoved", "true"},
                                         {"IgnoreEmptyValuedRpcHttpHeaders", "true"}})));
  const auto& bare = modern.input_data(0).data().http();
  EXPECT_EQ(bare.body().bytes(), R"({"b":2})");
  EXPECT_FALSE(bare.has_rawbody());
  EXPECT_EQ(bare.nullable_headers().at("x-a").value(), "1");
  EXPECT_TRUE(bare.nullable_headers().at("x-e").has_value()) << "an empty header is not a missing one";
  EXPECT_EQ(modern.trigger_metadata().at("id").string(), "7");
  wire::InvocationRequest sparing;
  ASSERT_TRUE(sparing.ParseFromString(
      write_http_invocation_body(input, {{"IgnoreEmptyValuedRpcHttpHeaders", "true"}})));
  EXPECT_EQ(sparing.input_data(0).data().http().headers().count("x-e"), 0U);
}

TEST(RpcValues, AnHttpTriggerTellsItsHeadersAndQueryAsTheyCame) {
  const HttpInput input{.binding = "req",
                        .method = "GET",
                        .url = "http://h/x",
                        .headers = {{"x-zed", "1"}, {"accept", "2"}},
                        .headers_as_sent = {{"X-Zed", "1"}, {"accept", "2"}},
                        .query = {{"z", "1"}, {"a", "2"}, {"m", ""}}};
  const std::string body = write_http_invocation_body(input, {{"UseNullableValueDictionaryForHttp", "true"}});
  wire::InvocationRequest request;
  ASSERT_TRUE(request.ParseFromString(body));
  EXPECT_EQ(request.trigger_metadata().at("Headers").json(), R"({"X-Zed":"1","accept":"2"})");
  EXPECT_EQ(request.trigger_metadata().at("Query").json(), R"({"z":"1","a":"2","m":""})");
  // On the wire they stand in the order of the request, whatever a map makes of it.
  EXPECT_LT(body.find("x-zed"), body.find("accept"));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(write_http_invocation_body(input, {{"UseNullableValueDictionaryForHttp", "true"}}), body);
  }
}

TEST(RpcValues, TheReturnValueIsTheAnswerOfAReturnBinding) {
  wire::InvocationResponse response;
  response.mutable_return_value()->mutable_http()->set_status_code("201");
  auto& shell = *response.add_output_data();
  shell.set_name("$return");
  shell.mutable_data()->mutable_http();
  EXPECT_EQ(read_http_output(response.SerializeAsString(), "$return")->status, 201);
}

TEST(RpcValues, ACookiesValueAddsNoAttribute) {
  wire::InvocationResponse response;
  auto& cookie = *response.mutable_return_value()->mutable_http()->add_cookies();
  cookie.set_name("c");
  cookie.set_value("a; Domain=evil.example b");
  cookie.mutable_path()->set_value("/x; Secure");
  EXPECT_EQ(read_http_output(response.SerializeAsString(), "$return")->headers.at(0).second,
            "c=a%3B%20Domain%3Devil.example%20b; Path=/x Secure");
}

TEST(RpcMapping, KeepsWhatACustomMetricSays) {
  wire::StreamingMessage sent;
  auto& log = *sent.mutable_rpc_log();
  log.set_log_category(wire::RpcLog::CustomMetric);
  (*log.mutable_propertiesmap())["Value"].set_double_(2.5);
  (*log.mutable_propertiesmap())["Name"].set_string("orders");
  EXPECT_EQ(read<Log>(sent).message, R"({"Name":"orders","Value":2.5})");
}

TEST(RpcMapping, InitTellsWhatTheHostOffersAndLogs) {
  const auto init = written(InitRequest{"/app"}).worker_init_request();
  EXPECT_EQ(init.capabilities().at("FunctionDataCache"), "false");
  EXPECT_EQ(init.log_categories().at("Function"), wire::RpcLog::Debug);
}

wire::InvocationResponse with_http(const std::string& status) {
  wire::InvocationResponse response;
  auto& http = *response.mutable_return_value()->mutable_http();
  http.set_status_code(status);
  (*http.mutable_headers())["X-Bad\r\nSet-Cookie"] = "a";
  (*http.mutable_headers())["X-Split"] = "a\r\nb: c";
  (*http.mutable_headers())["X-Good"] = "1";
  (*http.mutable_headers())["Content-Length"] = "99";
  http.mutable_body()->set_bytes(std::string{"\0\xff", 2});
  auto& cookie = *http.add_cookies();
  cookie.set_name("c");
  cookie.set_value("v");
  cookie.mutable_http_only()->set_value(true);
  cookie.set_same_site(wire::RpcHttpCookie::Lax);
  return response;
}

TEST(RpcValues, AnHttpAnswerKeepsItsBytesAndNoHeaderThatBreaksFraming) {
  const auto output = read_http_output(with_http("201").SerializeAsString(), "$return");
  ASSERT_TRUE(output);
  EXPECT_EQ(output->status, 201);
  EXPECT_EQ(output->body, (std::string{"\0\xff", 2}));
  EXPECT_EQ(output->headers, (TextPairs{{"X-Good", "1"}, {"Set-Cookie", "c=v; HttpOnly; SameSite=Lax"}}));
  EXPECT_FALSE(read_http_output(with_http("99").SerializeAsString(), "$return"));
  EXPECT_FALSE(read_http_output(with_http("2x").SerializeAsString(), "$return"));
}

TEST(RpcValues, ACookieLastsNoLongerThanANumberCanSay) {
  const auto lasting = [](double seconds) {
    wire::InvocationResponse response;
    auto& cookie = *response.mutable_return_value()->mutable_http()->add_cookies();
    cookie.set_name("c");
    cookie.mutable_max_age()->set_value(seconds);
    return read_http_output(response.SerializeAsString(), "$return")->headers.at(0).second;
  };
  EXPECT_EQ(lasting(12.9), "c=; Max-Age=12");
  EXPECT_EQ(lasting(1e300), "c=; Max-Age=2147483647");
  EXPECT_EQ(lasting(-1e300), "c=; Max-Age=-2147483648");
  EXPECT_EQ(lasting(std::numeric_limits<double>::infinity()), "c=; Max-Age=2147483647");
  EXPECT_EQ(lasting(std::numeric_limits<double>::quiet_NaN()), "c=");
}

TEST(RpcValues, AnHttpAnswerMayBeAnOutputOrAPlainValue) {
  wire::InvocationResponse response;
  EXPECT_EQ(read_http_output(response.SerializeAsString(), "res")->status, 204);
  response.mutable_return_value()->set_json(R"({"a":1})");
  EXPECT_EQ(read_http_output(response.SerializeAsString(), "res")->content_type,
            "application/json; charset=utf-8");
  auto& output = *response.add_output_data();
  output.set_name("res");
  output.mutable_data()->mutable_http()->set_status_code("202");
  EXPECT_EQ(read_http_output(response.SerializeAsString(), "res")->status, 202);
  output.mutable_rpc_shared_memory()->set_name("map");
  EXPECT_FALSE(read_http_output(response.SerializeAsString(), "res"));
}

TEST(RpcValues, AResultAsJsonKeepsEveryKind) {
  wire::InvocationResponse response;
  response.mutable_return_value()->set_string("a\"b\n");
  const auto add = [&](const std::string& name) -> wire::TypedData& {
    auto& binding = *response.add_output_data();
    binding.set_name(name);
    return *binding.mutable_data();
  };
  add("json").set_json("[1,2]");
  add("broken").set_json("[1,");
  add("int").set_int_(-3);
  add("double").set_double_(1.5);
  add("bytes").set_bytes(std::string{"\0\1", 2});
  add("none");
  add("list").mutable_collection_string()->add_string("x");
  const auto output = read_json_output(response.SerializeAsString());
  ASSERT_TRUE(output);
  EXPECT_EQ(output->return_value, R"("a\"b\n")");
  EXPECT_EQ(
      output->outputs,
      R"({"json":[1,2],"broken":"[1,","int":-3,"double":1.5,"bytes":{"base64url":"AAE"},"none":null,"list":["x"]})");
  EXPECT_FALSE(read_json_output("\xff"));
}

TEST(TraceContext, GoesOnWithAGoodParentAndBeginsAnewOtherwise) {
  Random random{1};
  const std::string parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const TraceContext child = continue_trace(parent, "a=b", random);
  EXPECT_TRUE(is_trace_parent(child.parent));
  EXPECT_EQ(child.parent.substr(0, 36), parent.substr(0, 36));
  EXPECT_NE(child.parent, parent);
  EXPECT_EQ(child.state, "a=b");
  for (const std::string& bad : std::vector<std::string>{
           "", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
           "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", std::string{"ff"} + parent.substr(2)}) {
    const TraceContext fresh = continue_trace(bad, "a=b", random);
    EXPECT_TRUE(is_trace_parent(fresh.parent)) << fresh.parent;
    EXPECT_TRUE(fresh.state.empty());
  }
  EXPECT_EQ(random_guid(random).size(), 36U);
}

}  // namespace
}  // namespace windlass::runtime
