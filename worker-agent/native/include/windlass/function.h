// The C++ API for functions: what an application is written against. Needs C++20 and the standard library,
// nothing to link.
//
//   #include <windlass/function.h>
//
//   WINDLASS_FUNCTION_APP(app) {
//     app.http("hello", {.methods = {"GET"}, .route = "hello/{name}"}, [](const windlass::Event& event,
//     windlass::Context&) {
//       return "Hello, " + std::string(event.http()->parameter("name"));
//     });
//   }
//
//   g++ -std=c++20 -O2 -fPIC -shared -I INCLUDE -o app.so app.cc
//
// A function runs on any of several threads, several invocations at a time. Whatever it throws fails that
// invocation alone. What is passed to it by reference, and every view it gets, lives until it returns.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace windlass {

// ---- What comes in.

// One datum, seen and not owned. Queue and Service Bus messages are Text, Json or Bytes; batches are Texts or
// Blobs, one view each, or a Json array.
struct Data {
  enum class Kind : std::uint8_t {
    Null,
    Text,
    Json,
    Bytes,
    Integer,
    Number,
    Http,
    Texts,
    Blobs,
    Integers,
    Numbers
  };

  Kind kind = Kind::Null;
  std::string_view text;                // of Text, Json and Bytes
  std::int64_t integer = 0;             // of Integer
  double number = 0;                    // of Number
  std::vector<std::string_view> parts;  // of Texts and Blobs
  std::vector<std::int64_t> integers;   // of Integers
  std::vector<double> numbers;          // of Numbers
};

using Pairs = std::vector<std::pair<std::string_view, std::string_view>>;

class HttpRequest {
 public:
  virtual ~HttpRequest() = default;
  virtual std::string_view method() const = 0;
  virtual std::string_view url() const = 0;
  // Empty when there is none. Names of headers match in any case.
  virtual std::string_view header(std::string_view name) const = 0;
  virtual std::string_view query(std::string_view name) const = 0;
  virtual std::string_view parameter(std::string_view name) const = 0;  // of the route: {name}
  virtual std::string_view body() const = 0;
  virtual Pairs headers() const = 0;
  virtual Pairs queries() const = 0;
  virtual Pairs parameters() const = 0;
};

// What the function was invoked for.
class Event {
 public:
  virtual ~Event() = default;
  virtual const Data& data() const = 0;         // the trigger's
  virtual const HttpRequest* http() const = 0;  // null unless the trigger is HTTP
  // An input binding's data, and what the trigger tells beside its data (MessageId, DequeueCount, ...). Null
  // when there is none.
  virtual Data input(std::string_view name) const = 0;
  virtual Data metadata(std::string_view name) const = 0;

  std::string_view text() const { return data().text; }  // the trigger's data where it is Text, Json or Bytes
};

// ---- What goes out.

struct Cookie {
  enum class SameSite : std::uint8_t { Unset, Lax, Strict, None };
  std::string name;
  std::string value;
  std::string path = {};
  std::string domain = {};
  std::optional<std::chrono::seconds> max_age = {};
  bool secure = false;
  bool http_only = false;
  SameSite same_site = SameSite::Unset;
};

struct HttpResponse {
  int status = 200;
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::vector<Cookie> cookies = {};
};

// What a function returns or puts out. An HTTP function may return any of them: text becomes text/plain, json
// application/json, bytes application/octet-stream, null 204.
class Value {
 public:
  struct Json {
    std::string text;
  };
  struct Bytes {
    std::string bytes;
  };
  using Any = std::variant<std::nullptr_t, std::string, Json, Bytes, std::int64_t, double, HttpResponse>;

  Value(std::nullptr_t = nullptr) {}                           // NOLINT(google-explicit-constructor)
  Value(std::string text) : any_(std::move(text)) {}           // NOLINT(google-explicit-constructor)
  Value(std::string_view text) : any_(std::string(text)) {}    // NOLINT(google-explicit-constructor)
  Value(const char* text) : any_(std::string(text)) {}         // NOLINT(google-explicit-constructor)
  Value(HttpResponse response) : any_(std::move(response)) {}  // NOLINT(google-explicit-constructor)
  template <class T>
  requires std::is_arithmetic_v<T> Value(T number) {  // NOLINT(google-explicit-constructor)
    if constexpr (std::is_same_v<T, bool>) {
      any_ = Json{number ? "true" : "false"};
    } else if constexpr (std::is_integral_v<T>) {
      any_ = static_cast<std::int64_t>(number);
    } else {
      any_ = static_cast<double>(number);
    }
  }

  static Value json(std::string text) { return Value(Any(Json{std::move(text)})); }
  static Value bytes(std::string bytes) { return Value(Any(Bytes{std::move(bytes)})); }

  const Any& any() const { return any_; }
  Any& any() { return any_; }

 private:
  explicit Value(Any any) : any_(std::move(any)) {}
  Any any_ = nullptr;
};

// ---- While it runs.

enum class Level : std::uint8_t { Trace, Debug, Information, Warning, Error, Critical };

// Thrown out of a function: the invocation ends as cancelled instead of failed.
class Cancelled : public std::exception {
 public:
  const char* what() const noexcept override { return "the invocation was cancelled"; }
};

struct Trace {
  std::string_view parent;  // W3C traceparent and tracestate
  std::string_view state;
};

struct Retries {
  int count = 0;  // 0: the first try
  int max = 0;
};

class Context {
 public:
  virtual ~Context() = default;
  virtual std::string_view invocation_id() const = 0;
  virtual std::string_view function_name() const = 0;
  virtual void log(Level level, std::string_view message) = 0;
  virtual void output(std::string_view binding,
                      Value value) = 0;  // for an output binding; the last one counts
  virtual bool cancelled() const = 0;
  // Waits that long or until the invocation is cancelled, and says whether it was.
  virtual bool wait(std::chrono::milliseconds time) = 0;
  virtual Trace trace() const = 0;
  virtual Retries retries() const = 0;

  void throw_if_cancelled() const {
    if (cancelled()) throw Cancelled();
  }
  void debug(std::string_view message) { log(Level::Debug, message); }
  void info(std::string_view message) { log(Level::Information, message); }
  void warning(std::string_view message) { log(Level::Warning, message); }
  void error(std::string_view message) { log(Level::Error, message); }
};

using Handler = std::function<Value(const Event&, Context&)>;

// ---- Registration.

struct Property {
  using Any = std::variant<std::string, bool, std::int64_t, std::vector<std::string>>;
  std::string name;
  Any value;
};

// A trigger, an input or an output, as function.json describes one. Types end in "Trigger" for triggers
// alone.
struct Binding {
  enum class Direction : std::uint8_t { In, Out };
  std::string type;
  std::string name;
  Direction direction = Direction::In;
  std::vector<Property> properties = {};
};

// How the host repeats a failed invocation.
struct Retry {
  enum class Strategy : std::uint8_t { None, Fixed, Exponential };
  Strategy strategy = Strategy::None;
  int count_max = 0;  // -1: for ever
  std::chrono::seconds delay{0};
  std::chrono::seconds delay_max{0};  // of Exponential, whose `delay` is the shortest

  static Retry fixed(int count_max, std::chrono::seconds delay) {
    return {Strategy::Fixed, count_max, delay, {}};
  }
  static Retry exponential(int count_max, std::chrono::seconds shortest, std::chrono::seconds longest) {
    return {Strategy::Exponential, count_max, shortest, longest};
  }
};

struct Function {
  std::string name;  // letter, then letters, digits, '_' or '-'; unique in the application in any case
  std::vector<Binding> bindings;
  Retry retry;
  Handler handler;
};

// The worker's side of registration.
class Registry {
 public:
  virtual ~Registry() = default;
  virtual void add(Function function) = 0;
};

struct QueueOptions {
  std::string queue = {};
  std::string connection = "AzureWebJobsStorage";
  std::vector<Binding> bindings = {};  // further inputs and outputs
  Retry retry = {};
};

struct HttpOptions {
  std::vector<std::string> methods = {"GET", "POST"};
  std::string route = {};  // empty: the function's name
  std::string auth_level = "anonymous";
  std::vector<Binding> bindings = {};
};

struct TimerOptions {
  std::string schedule = {};  // "{second} {minute} {hour} {day} {month} {weekday}"
  bool run_on_startup = false;
  std::vector<Binding> bindings = {};
  Retry retry = {};
};

struct ServiceBusQueueOptions {
  std::string queue = {};
  std::string connection = {};
  bool batch = false;  // many messages in one invocation
  bool sessions = false;
  std::vector<Binding> bindings = {};
  Retry retry = {};
};

struct ServiceBusTopicOptions {
  std::string topic = {};
  std::string subscription = {};
  std::string connection = {};
  bool batch = false;
  bool sessions = false;
  std::vector<Binding> bindings = {};
  Retry retry = {};
};

struct EventHubOptions {
  std::string event_hub = {};
  std::string connection = {};
  std::string consumer_group = "$Default";
  bool batch = true;
  std::vector<Binding> bindings = {};
  Retry retry = {};
};

// Where a function puts messages besides returning a value: Context::output(name, value).
inline Binding queue_output(std::string name, std::string queue,
                            std::string connection = "AzureWebJobsStorage") {
  return {"queue",
          std::move(name),
          Binding::Direction::Out,
          {{"queueName", std::move(queue)}, {"connection", std::move(connection)}}};
}

class App final {
 public:
  explicit App(Registry& registry) : registry_(registry) {}

  // `handler` is called as (const Event&, Context&) and returns a Value, something a Value is made of, or
  // nothing.
  template <class F>
  void queue(std::string name, QueueOptions options, F handler) {
    Binding trigger = in("queueTrigger");
    set(trigger, "queueName", options.queue);
    set(trigger, "connection", options.connection);
    add(std::move(name), std::move(trigger), std::move(options.bindings), options.retry, std::move(handler));
  }

  template <class F>
  void http(std::string name, HttpOptions options, F handler) {
    Binding trigger = in("httpTrigger");
    set(trigger, "authLevel", options.auth_level);
    set(trigger, "methods", options.methods);
    if (!options.route.empty()) set(trigger, "route", options.route);
    options.bindings.push_back({"http", "$return", Binding::Direction::Out, {}});
    add(std::move(name), std::move(trigger), std::move(options.bindings), {}, std::move(handler));
  }

  template <class F>
  void timer(std::string name, TimerOptions options, F handler) {
    Binding trigger = in("timerTrigger");
    set(trigger, "schedule", options.schedule);
    set(trigger, "runOnStartup", options.run_on_startup);
    add(std::move(name), std::move(trigger), std::move(options.bindings), options.retry, std::move(handler));
  }

  template <class F>
  void service_bus_queue(std::string name, ServiceBusQueueOptions options, F handler) {
    Binding trigger = in("serviceBusTrigger");
    set(trigger, "queueName", options.queue);
    set(trigger, "connection", options.connection);
    set(trigger, "cardinality", std::string(options.batch ? "many" : "one"));
    set(trigger, "isSessionsEnabled", options.sessions);
    add(std::move(name), std::move(trigger), std::move(options.bindings), options.retry, std::move(handler));
  }

  template <class F>
  void service_bus_topic(std::string name, ServiceBusTopicOptions options, F handler) {
    Binding trigger = in("serviceBusTrigger");
    set(trigger, "topicName", options.topic);
    set(trigger, "subscriptionName", options.subscription);
    set(trigger, "connection", options.connection);
    set(trigger, "cardinality", std::string(options.batch ? "many" : "one"));
    set(trigger, "isSessionsEnabled", options.sessions);
    add(std::move(name), std::move(trigger), std::move(options.bindings), options.retry, std::move(handler));
  }

  template <class F>
  void event_hub(std::string name, EventHubOptions options, F handler) {
    Binding trigger = in("eventHubTrigger");
    set(trigger, "eventHubName", options.event_hub);
    set(trigger, "connection", options.connection);
    set(trigger, "consumerGroup", options.consumer_group);
    set(trigger, "cardinality", std::string(options.batch ? "many" : "one"));
    add(std::move(name), std::move(trigger), std::move(options.bindings), options.retry, std::move(handler));
  }

  // Any other trigger: its binding's type ends in "Trigger" and its direction is In.
  template <class F>
  void add(std::string name, Binding trigger, std::vector<Binding> others, Retry retry, F handler) {
    others.insert(others.begin(), std::move(trigger));
    registry_.add({std::move(name), std::move(others), retry, returning_value(std::move(handler))});
  }

 private:
  static Binding in(std::string type) { return {std::move(type), "event", Binding::Direction::In, {}}; }
  template <class T>
  static void set(Binding& binding, std::string name, T value) {
    binding.properties.push_back({std::move(name), Property::Any(std::move(value))});
  }
  template <class F>
  static Handler returning_value(F handler) {
    if constexpr (std::is_void_v<std::invoke_result_t<F&, const Event&, Context&>>) {
      return [handler = std::move(handler)](const Event& event, Context& context) mutable -> Value {
        handler(event, context);
        return nullptr;
      };
    } else {
      return Handler(std::move(handler));
    }
  }

  Registry& registry_;
};

// What worker and shared object must agree on. Objects built against another version, or with a library of
// another layout, are refused by name instead of crashing.
struct Abi {
  std::uint32_t version = 1;
  std::uint32_t string_bytes = sizeof(std::string);
  std::uint32_t function_bytes = sizeof(Function);
  std::uint32_t value_bytes = sizeof(Value);
  friend bool operator==(const Abi&, const Abi&) = default;
};

}  // namespace windlass

// Once in each shared object: the body registers its functions with `app`.
// NOLINTBEGIN(bugprone-macro-parentheses): the argument is a name that is declared.
#define WINDLASS_FUNCTION_APP(app)                                                                           \
  static void windlass_application_body(::windlass::App& app);                                               \
  extern "C" __attribute__((visibility("default"))) void windlass_abi(::windlass::Abi* abi) {                \
    *abi = ::windlass::Abi();                                                                                \
  }                                                                                                          \
  extern "C" __attribute__((visibility("default"))) void windlass_register(::windlass::Registry* registry) { \
    ::windlass::App windlass_application(*registry);                                                         \
    windlass_application_body(windlass_application);                                                         \
  }                                                                                                          \
  static void windlass_application_body(::windlass::App& app)
// NOLINTEND(bugprone-macro-parentheses)
