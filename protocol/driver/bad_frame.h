// From what the decoder says of a refused message to what an endpoint is told.
#pragma once

#include <string>
#include <string_view>

#include "protocol/codec/decode.h"
#include "protocol/session/session.h"

namespace windlass {

inline std::string describe(const Violation& violation) {
  std::string info = violation.pointer;
  if (!info.empty()) info += ": ";
  info += violation.reason;
  return info;
}

// The views point into both arguments.
inline BadFrame bad_frame(const Violation& violation, std::string_view info) {
  return {violation.code, violation.frame_id, violation.frame_type, info};
}

}  // namespace windlass
