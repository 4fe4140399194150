// Who this worker is, for as long as its state folder lives.
#pragma once

#include <string>

#include "protocol/base/result.h"

namespace windlass::agent {

// Reads the id, or makes one when there is no file. A file that cannot be read or understood is an error and
// stays as it is: a second identity would leave the first one's commands unanswered.
Result<std::string> load_instance_id(const std::string& path);

}  // namespace windlass::agent
