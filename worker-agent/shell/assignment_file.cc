#include "worker-agent/shell/assignment_file.h"

#include <unistd.h>

#include <utility>

#include "protocol/shell/seal_file.h"
#include "worker-agent/adapters/files.h"

namespace windlass::agent {

Result<AssignmentFile> AssignmentFile::open(const std::string& state_folder, const std::string& keys_file,
                                            const std::string& instance_id) {
  auto sealer = open_seal_file(keys_file, true);
  if (!sealer) return sealer.error();
  AssignmentFile file{state_folder + "/assignment.sealed", "assignment of " + instance_id,
                      *std::move(sealer)};
  // As earlier versions kept it.
  const std::string clear_path = state_folder + "/assignment.json";
  const auto clear = read_all(clear_path);
  if (!clear) return clear.error();
  if (clear->empty()) return file;
  if (const auto earlier = parse_assignment(*clear)) {
    if (auto written = file.write(*earlier); !written) return written.error();
  }
  ::unlink(clear_path.c_str());
  return file;
}

AssignmentFile::AssignmentFile(std::string path, std::string place, Sealer sealer)
    : path_(std::move(path)), place_(std::move(place)), sealer_(std::move(sealer)) {}

Result<Assignment> AssignmentFile::read() const {
  const auto bytes = read_all(path_);
  if (!bytes) return bytes.error();
  if (bytes->empty()) return Assignment{};
  const auto text = sealer_.open(*bytes, place_);
  if (!text) return text.error();
  return parse_assignment(*text);
}

Result<Done> AssignmentFile::renew() {
  const auto bytes = read_all(path_);
  if (!bytes || bytes->empty() || Sealer::kid_of(*bytes) == sealer_.newest()) return Done{};
  const auto text = sealer_.open(*bytes, place_);
  if (!text) return Done{};  // read() says so
  return replace_file(path_, sealer_.seal(*text, place_));
}

Result<Done> AssignmentFile::write(const Assignment& assignment) {
  return replace_file(path_, sealer_.seal(assignment_text(assignment), place_));
}

}  // namespace windlass::agent
