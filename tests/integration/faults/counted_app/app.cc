// What fault tests invoke: a function that adds its key as a line to a file, so that somebody else than
// windlass can count how often it ran, and then takes its time, so that a fault finds it at work.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <windlass/function.h>
#include <windlass/json.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace {

using windlass::Context;
using windlass::Event;
using windlass::Json;
using windlass::Value;

// {"key": "h1-1-1", "wait_ms": 20} -> the key
Value append(std::string_view text, Context& context) {
  const Json order = Json::parse(text);
  const std::string key = order["key"].string("");
  const char* path = std::getenv("COUNTED_EFFECTS");
  if (key.empty() || path == nullptr) throw std::invalid_argument("a key and COUNTED_EFFECTS are needed");
  const int file = ::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) throw std::runtime_error("the file of effects cannot be opened");
  // One write: lines of several workers do not mix.
  const std::string line = key + "\n";
  const bool is_written = ::write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  ::close(file);
  if (!is_written) throw std::runtime_error("the effect was not written");
  context.wait(std::chrono::milliseconds(static_cast<int>(order["wait_ms"].number(0))));
  return key;
}

}  // namespace

WINDLASS_FUNCTION_APP(app) {
  // With COUNTED_BROKEN nobody can start; with COUNTED_FALLS only the process that makes this folder cannot.
  const char* falls = std::getenv("COUNTED_FALLS");
  if (std::getenv("COUNTED_BROKEN") != nullptr || (falls != nullptr && ::mkdir(falls, 0700) == 0)) {
    throw std::runtime_error("these settings do not do");
  }
  // What the worker was told: GET /api/setting?name=CITY
  app.http("setting", {.methods = {"GET"}, .route = "setting"}, [](const Event& event, Context&) -> Value {
    const char* const value = std::getenv(std::string{event.http()->query("name")}.c_str());
    return std::string{value == nullptr ? "(none)" : value};
  });
  app.http("append", {.methods = {"POST"}, .route = "append"},
           [](const Event& event, Context& context) { return append(event.http()->body(), context); });
  // With COUNTED_LATE the process that makes this folder lacks the function that all others have.
  const char* late = std::getenv("COUNTED_LATE");
  if (late != nullptr && ::mkdir(late, 0700) != 0) {
    app.http("late", {.methods = {"POST"}, .route = "late"},
             [](const Event& event, Context& context) { return append(event.http()->body(), context); });
  }
  // With COUNTED_LONE only the process that makes this folder has the function: the others cannot load it.
  const char* lone = std::getenv("COUNTED_LONE");
  if (lone != nullptr && ::mkdir(lone, 0700) == 0) {
    app.http("lone", {.methods = {"POST"}, .route = "lone"},
             [](const Event& event, Context& context) { return append(event.http()->body(), context); });
  }
  app.queue("append_order", {.queue = "orders"},
            [](const Event& event, Context& context) { return append(event.text(), context); });
}
