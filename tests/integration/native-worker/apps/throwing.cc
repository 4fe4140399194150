#include <windlass/function.h>

#include <stdexcept>

WINDLASS_FUNCTION_APP(app) {
  app.queue("never", {.queue = "q"}, [](const windlass::Event&, windlass::Context&) {});
  throw std::runtime_error("no settings here");
}
