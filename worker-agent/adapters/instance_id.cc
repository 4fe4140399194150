#include "worker-agent/adapters/instance_id.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "protocol/base/limits.h"
#include "worker-agent/adapters/files.h"

namespace windlass::agent {
namespace {

bool is_id(std::string_view text) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !text.empty() && text.size() <= limits::kIdBytesMax && std::ranges::all_of(text, is_allowed);
}

Result<std::string> make_id(const std::string& path) {
  std::array<unsigned char, 16> random{};
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    return file_error(path, "cannot be made, there is no randomness", errno);
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string id = "w-";
  for (const unsigned char byte : random) {
    id += kDigits[byte >> 4U];
    id += kDigits[byte & 15U];
  }
  if (auto written = replace_file(path, id + "\n"); !written) return written.error();
  return id;
}

}  // namespace

Result<std::string> load_instance_id(const std::string& path) {
  const FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file.is_open() && errno == ENOENT) return make_id(path);
  if (!file.is_open()) return file_error(path, "cannot be read; it says who this worker is", errno);
  auto text = read_all(file.get(), path);
  if (!text) return text.error();
  std::string_view id = *text;
  if (id.ends_with('\n')) id.remove_suffix(1);
  if (is_id(id)) return std::string{id};
  return Error{ErrorCode::StoreInvalid, Blame::Local,
               path +
                   " holds no instance id (1 to 128 letters, digits, '-', '_' or '.'); restore it from a "
                   "backup, or remove it to become a new worker."};
}

}  // namespace windlass::agent
