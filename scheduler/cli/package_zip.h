// Zip files of applications: made from a folder so that the same files always give the same bytes, and looked
// through before anybody else has to. Hides libarchive.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "protocol/base/result.h"

namespace windlass::cli {

struct ZipBounds {
  std::uint64_t files_max = 50'000;
  std::uint64_t bytes_max = 2ULL * 1024 * 1024 * 1024;  // unpacked
  std::uint64_t ratio_max = 200;                        // unpacked to packed, beyond the first megabytes
  std::uint64_t text_bytes_max = 1024 * 1024;           // of one host.json, function.json or windlass.json
};

// What a package says of itself.
struct ZipContents {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;  // unpacked
  std::map<std::string, std::string>
      texts;  // host.json, windlass.json, package.json and */function.json by path
  bool has_shared_objects = false;
  bool has_node_modules = false;
};

// Leaves out .git and local.settings.json. Refuses links that lead out of the folder. Times and owners are
// not kept; whether a file may be executed is.
Result<Done> write_zip(const std::string& folder, const std::string& file, const ZipBounds& bounds = {});

// Refuses absolute paths, "..", links that lead out, special files, a path twice, and what is beyond bounds.
Result<ZipContents> inspect_zip(const std::string& file, const ZipBounds& bounds = {});

// Empty if the path stays inside; else what is wrong with it.
std::string path_problem(std::string_view path);
// Whether a link at `path` with this target stays inside.
bool link_stays_inside(std::string_view path, std::string_view target);

}  // namespace windlass::cli
