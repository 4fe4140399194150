// The files of an unpacked package: sealed against changes, told apart from changed ones, removed.
#pragma once

#include <string>

#include "protocol/base/result.h"

namespace windlass::agent {

// SHA-256 in lower-case hex over the names, kinds, permissions and contents of everything below the folder.
// Two folders with the same files have the same, whatever else differs.
Result<std::string> tree_digest(const std::string& folder);

// Nothing below the folder can be written by anybody any more, and everybody who may enter it can read.
Result<Done> make_read_only(const std::string& folder);

// Also one that was made read-only.
void remove_tree(const std::string& folder);

}  // namespace windlass::agent
