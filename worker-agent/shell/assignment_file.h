// What the language worker was last made, kept for a restart. It has the application's settings, which are
// secrets, so the file is encrypted.
#pragma once

#include <string>

#include "protocol/crypto/seal.h"
#include "worker-agent/core/worker_command.h"

namespace windlass::agent {

class AssignmentFile final {
 public:
  // A file in clear text of an earlier version is encrypted. The key file is made if there is none.
  static Result<AssignmentFile> open(const std::string& state_folder, const std::string& keys_file,
                                     const std::string& instance_id);

  // Nothing in it if there is no file. An error: it cannot be read.
  Result<Assignment> read() const;
  // Encrypts with the newest key what an older one had encrypted, so that the older one can be dropped.
  Result<Done> renew();
  Result<Done> write(const Assignment& assignment);
  const std::string& path() const { return path_; }

 private:
  AssignmentFile(std::string path, std::string place, Sealer sealer);

  std::string path_;
  std::string place_;
  Sealer sealer_;
};

}  // namespace windlass::agent
