// Files that hold secrets must not be readable by every user of the machine.
#pragma once

#include <string>

#include "protocol/base/result.h"

namespace windlass {

// An error, one sentence with the file's name, if users other than its owner and its group can read it: its
// mode lets them, and so does that of every folder above it. A file that is not there is no error here.
Result<Done> check_private(const std::string& path);

}  // namespace windlass
