// What an application is, judged from the files in its package: language and versions, or why it is none.
#pragma once

#include <string>
#include <vector>

#include "protocol/base/result.h"
#include "scheduler/cli/package_zip.h"

namespace windlass::cli {

struct PackageIdentity {
  std::string language;
  std::string metadata_version;            // of all that may say what functions there are
  std::string code_version;                // of the digest
  std::vector<std::string> functions;      // those that a function.json names
  std::vector<std::string> warnings = {};  // one sentence each
};

// An empty `language` means: find out.
Result<PackageIdentity> identify_package(const ZipContents& contents, const std::string& digest,
                                         const std::string& language);

// "my app.zip" becomes "my-app": what an application may be called.
std::string application_name(const std::string& path);

}  // namespace windlass::cli
