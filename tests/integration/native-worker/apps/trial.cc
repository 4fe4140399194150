// What the tests of the native worker invoke: echoes, gates, failures and crashes.
#include <windlass/function.h>
#include <windlass/json.h>

#include <unistd.h>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace {

using windlass::Context;
using windlass::Event;
using windlass::Value;

struct Odd {};

Value echo(const Event& event, Context&) {
  switch (event.data().kind) {
    case windlass::Data::Kind::Json:
      return Value::json(std::string(event.text()));
    case windlass::Data::Kind::Bytes:
      return Value::bytes(std::string(event.text()));
    case windlass::Data::Kind::Integer:
      return event.data().integer;
    case windlass::Data::Kind::Number:
      return event.data().number;
    case windlass::Data::Kind::Texts:
      return static_cast<int>(event.data().parts.size());
    case windlass::Data::Kind::Null:
      return nullptr;
    default:
      return event.text();
  }
}

Value fail(const Event& event, Context&) {
  if (event.text() == "odd") throw Odd();
  if (event.text() == "text") return "\xff\xfe";
  if (event.text() == "nested") {
    try {
      throw std::runtime_error("the cause");
    } catch (...) {
      std::throw_with_nested(std::logic_error("the effect"));
    }
  }
  throw std::out_of_range("no such order");
}

// Waits until it is cancelled; says so when it began.
Value until_cancelled(const Event&, Context& context) {
  context.info("began");
  while (!context.wait(std::chrono::seconds(1))) continue;
  throw windlass::Cancelled();
}

// Short as a rule; "stop" makes it hang until it is cancelled.
Value fickle(const Event& event, Context& context) {
  if (event.text() != "stop") return event.text();
  context.info("began");
  while (!context.wait(std::chrono::seconds(1))) continue;
  return "let go";
}

Value chatty(const Event& event, Context& context) {
  for (int line = 0; line < 3; ++line) context.log(windlass::Level::Warning, "line " + std::to_string(line));
  context.debug(std::string(event.metadata("MessageId").text));
  context.info(std::string(context.trace().parent) + "|" + std::string(context.trace().state) + "|" +
               std::to_string(context.retries().count) + "/" + std::to_string(context.retries().max));
  context.output("copy", "first");
  context.output("copy", Value::json("[1]"));
  return event.input("other").text;
}

Value environment(const Event& event, Context&) {
  const char* value = std::getenv(std::string(event.text()).c_str());
  char folder[4096];
  return std::string(value != nullptr ? value : "unset") + "|" +
         (getcwd(folder, sizeof folder) != nullptr ? folder : "");
}

Value web(const Event& event, Context&) {
  const windlass::HttpRequest& request = *event.http();
  if (request.query("kind") == "text") return "plain";
  if (request.query("kind") == "null") return nullptr;
  return windlass::HttpResponse{.status = 201,
                                .body = std::string(request.method()) + " " +
                                        std::string(request.parameter("id")) + " " +
                                        std::string(request.body()),
                                .headers = {{"x-seen", std::string(request.header("X-Ask"))}},
                                .cookies = {{.name = "c", .value = "1", .path = "/", .http_only = true}}};
}

}  // namespace

WINDLASS_FUNCTION_APP(app) {
  using windlass::Retry;
  app.queue("echo", {.queue = "q"}, echo);
  app.queue("fail", {.queue = "q"}, fail);
  app.queue("until_cancelled", {.queue = "q"}, until_cancelled);
  app.queue("fickle", {.queue = "q"}, fickle);
  app.queue("chatty", {.queue = "q", .bindings = {windlass::queue_output("copy", "copies")}}, chatty);
  app.queue("environment", {.queue = "q"}, environment);
  app.queue("crash", {.queue = "q"}, [](const Event&, Context&) { std::abort(); });
  app.queue("huge", {.queue = "q"},
            [](const Event&, Context&) { return std::string(std::size_t{2} << 20, 'h'); });
  app.http("web", {.methods = {"GET", "POST"}, .route = "web/{id}"}, web);
  app.timer("tick", {.schedule = "0 */5 * * * *"}, [](const Event&, Context&) {});
  app.service_bus_queue("bus", {.queue = "b", .connection = "BUS", .batch = true}, echo);
  app.service_bus_topic("topic", {.topic = "t", .subscription = "s", .connection = "BUS"}, echo);
  app.event_hub("hub",
                {.event_hub = "h",
                 .connection = "HUB",
                 .retry = Retry::exponential(-1, std::chrono::seconds(1), std::chrono::seconds(60))},
                echo);
}
