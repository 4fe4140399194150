// The function that every host of bench_rpc invokes: it gives back what it got, so that what is measured is
// the way there and back.
#include <windlass/function.h>

WINDLASS_FUNCTION_APP(app) {
  app.queue("echo", {.queue = "echo"}, [](const windlass::Event& event, windlass::Context&) {
    return windlass::Value::bytes(std::string{event.text()});
  });
}
