#include "worker-agent/adapters/package_tree.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "worker-agent/adapters/files.h"

namespace windlass::agent {
namespace {

namespace fs = std::filesystem;

class TreeHash final {
 public:
  TreeHash() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    is_good_ = context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1;
  }
  void add(BytesView bytes) {
    is_good_ = is_good_ && EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1;
  }
  // With its length, so that no two lists of texts are the same to the hash.
  void add_text(std::string_view text) {
    add(std::to_string(text.size()) + ":");
    add(text);
  }
  Result<std::string> finish() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    if (!is_good_ || EVP_DigestFinal_ex(context_.get(), digest.data(), &size) != 1) {
      return Error{ErrorCode::Internal, Blame::Local, "the digest of a package cannot be made"};
    }
    static constexpr std::string_view kHex = "0123456789abcdef";
    std::string text;
    for (unsigned i = 0; i < size; ++i) {
      text += kHex[digest[i] >> 4U];
      text += kHex[digest[i] & 15U];
    }
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
  bool is_good_ = false;
};

Result<Done> add_file(TreeHash& hash, const std::string& path) {
  const FileDescriptor file{::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)};
  struct stat facts {};
  if (!file.is_open() || ::fstat(file.get(), &facts) != 0) return file_error(path, "cannot be read", errno);
  hash.add_text((facts.st_mode & 0111U) != 0 ? "program" : "file");
  hash.add_text(std::to_string(facts.st_size));
  std::array<char, 65'536> buffer;
  for (;;) {
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error(path, "cannot be read", errno);
    if (count == 0) return Done{};
    hash.add({buffer.data(), static_cast<std::size_t>(count)});
  }
}

// Every path below the folder, in order.
Result<std::vector<fs::path>> paths_below(const std::string& folder) {
  std::vector<fs::path> all;
  std::error_code error;
  for (fs::recursive_directory_iterator at{folder, error}, end; !error && at != end; at.increment(error)) {
    all.push_back(at->path());
  }
  if (error) return file_error(folder, "cannot be listed", error.value());
  std::ranges::sort(all);
  return all;
}

}  // namespace

Result<std::string> tree_digest(const std::string& folder) {
  const auto paths = paths_below(folder);
  if (!paths) return paths.error();
  TreeHash hash;
  std::error_code error;
  for (const fs::path& path : *paths) {
    hash.add_text(path.lexically_relative(folder).string());
    const fs::file_status status = fs::symlink_status(path, error);
    if (fs::is_symlink(status)) {
      hash.add_text("link");
      hash.add_text(fs::read_symlink(path, error).string());
    } else if (fs::is_directory(status)) {
      hash.add_text("folder");
    } else if (fs::is_regular_file(status)) {
      if (auto added = add_file(hash, path.string()); !added) return added.error();
    } else {
      hash.add_text("other");  // nothing that unpacking makes
    }
    if (error) return file_error(path.string(), "cannot be read", error.value());
  }
  return hash.finish();
}

Result<Done> make_read_only(const std::string& folder) {
  const auto paths = paths_below(folder);
  if (!paths) return paths.error();
  for (const fs::path& path : *paths) {
    struct stat facts {};
    if (::lstat(path.c_str(), &facts) != 0) return file_error(path.string(), "cannot be read", errno);
    if (S_ISLNK(facts.st_mode)) continue;
    const mode_t mode = S_ISDIR(facts.st_mode) || (facts.st_mode & 0111U) != 0 ? 0555 : 0444;
    if (::chmod(path.c_str(), mode) != 0) return file_error(path.string(), "cannot be closed", errno);
  }
  return Done{};
}

void remove_tree(const std::string& folder) {
  std::error_code error;
  ::chmod(folder.c_str(), 0700);
  for (fs::recursive_directory_iterator at{folder, error}, end; !error && at != end; at.increment(error)) {
    // Opened before the iterator goes into it.
    if (at->is_directory(error) && !at->is_symlink(error)) ::chmod(at->path().c_str(), 0700);
  }
  fs::remove_all(folder, error);
}

}  // namespace windlass::agent
