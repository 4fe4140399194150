// Lies in one application twice, so that its function is registered twice.
#include <windlass/function.h>

WINDLASS_FUNCTION_APP(app) {
  app.queue("orders", {.queue = "q"}, [](const windlass::Event&, windlass::Context&) {});
}
