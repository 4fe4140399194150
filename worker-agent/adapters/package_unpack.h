// Unpacks an application's package, a zip, which anybody may have made: nothing is written outside the
// destination, and neither the number of files nor their size is taken on trust.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "protocol/base/result.h"

namespace windlass::agent {

struct UnpackBounds {
  std::size_t entries_max = 65'536;
  std::uint64_t bytes_max = std::uint64_t{1} << 30U;     // unpacked, all files together
  std::uint64_t bytes_free_of_ratio = 64 * 1024 * 1024;  // up to here any ratio is fine
  std::uint64_t ratio_max = 200;                         // unpacked to packed, beyond that
  std::size_t path_bytes_max = 1024;
  std::size_t depth_max = 64;
};

// Into `destination`, which must not be there: it appears whole or not at all. E.PKG.INVALID and a sentence
// for a package that is refused.
Result<Done> unpack_package(const std::string& package, const std::string& destination,
                            const UnpackBounds& bounds = {});

// What a runtime reads of an application, which travels to it since it may be on another machine.
struct PackageTexts {
  std::string host_json;
  std::map<std::string, std::string> function_json;  // by function, which is its folder's name
};
Result<PackageTexts> read_package_texts(const std::string& folder);

}  // namespace windlass::agent
