// What every program of ours says when it is asked for its version: CMake's project version.
#pragma once

#include <string_view>

namespace windlass {

std::string_view version();

}  // namespace windlass
