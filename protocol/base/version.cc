#include "protocol/base/version.h"

namespace windlass {

std::string_view version() {
  return WINDLASS_VERSION;
}

}  // namespace windlass
