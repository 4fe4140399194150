#include <windlass/function.h>

WINDLASS_FUNCTION_APP(app) {
  static_cast<void>(app);
}
