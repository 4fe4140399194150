// A small application in C++: a queue function that computes, an HTTP function with a route parameter, and a
// slow one that stops when it is told to.
#include <windlass/function.h>
#include <windlass/json.h>

#include <string>

namespace {

using windlass::Context;
using windlass::Event;
using windlass::Json;
using windlass::Value;

// {"id": "A1", "lines": [{"price": 2.5, "count": 4}, ...]} -> {"id": "A1", "total": 10, "lines": 1}
Value total_of_order(const Event& event, Context& context) {
  const Json order = Json::parse(event.text());
  double total = 0;
  for (const Json& line : order["lines"].array()) total += line["price"].number(0) * line["count"].number(1);
  const std::string id = order["id"].string("unknown");
  context.info("order " + id + ": " + std::to_string(order["lines"].array().size()) + " lines");
  return Value::json("{\"id\":" + windlass::json_quote(id) + ",\"total\":" + windlass::json_number(total) +
                     ",\"lines\":" + std::to_string(order["lines"].array().size()) + "}");
}

Value hello(const Event& event, Context&) {
  const std::string_view name = event.http()->parameter("name");
  return "Hello, " + std::string(name.empty() ? "world" : name) + "!\n";
}

// {"seconds": 30}: that many steps of a second each, given up when the invocation is cancelled.
Value slow(const Event& event, Context& context) {
  const int seconds = static_cast<int>(Json::parse(event.text())["seconds"].number(30));
  for (int step = 0; step < seconds; ++step) {
    if (context.wait(std::chrono::seconds(1))) {
      context.warning("given up after " + std::to_string(step) + " of " + std::to_string(seconds) + " steps");
      throw windlass::Cancelled();
    }
  }
  return seconds;
}

}  // namespace

WINDLASS_FUNCTION_APP(app) {
  app.queue("orders", {.queue = "orders", .retry = windlass::Retry::fixed(3, std::chrono::seconds(5))},
            total_of_order);
  app.http("hello", {.methods = {"GET"}, .route = "hello/{name?}"}, hello);
  app.queue("slow", {.queue = "slow"}, slow);
}
