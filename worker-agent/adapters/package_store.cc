#include "worker-agent/adapters/package_store.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "worker-agent/adapters/package_tree.h"

namespace windlass::agent {
namespace {

constexpr std::string_view kFetching = ".zip";
constexpr std::string_view kTree = ".tree";  // the digest of what was unpacked

Result<std::string> digest_of_file(const std::string& path) {
  const FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file.is_open()) return file_error(path, "cannot be read", errno);
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
  std::array<unsigned char, 65'536> buffer;
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  bool is_good = context && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;
  for (ssize_t count = 1; is_good && count != 0;) {
    count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0) return file_error(path, "cannot be read", errno);
    is_good = EVP_DigestUpdate(context.get(), buffer.data(), static_cast<std::size_t>(count)) == 1;
  }
  if (!is_good || EVP_DigestFinal_ex(context.get(), digest.data(), &size) != 1) {
    return Error{ErrorCode::Internal, Blame::Local, "the digest of " + path + " cannot be made"};
  }
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < size; ++i) {
    text += kHex[digest[i] >> 4U];
    text += kHex[digest[i] & 15U];
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<PackageStore>> PackageStore::open(PackageStoreOptions options) {
  if (auto made = make_folder(options.folder); !made) return made.error();
  // What a process before this one did not finish.
  std::error_code error;
  std::vector<std::filesystem::path> unfinished;
  for (const auto& entry : std::filesystem::directory_iterator{options.folder, error}) {
    if (entry.path().has_extension() && entry.path().extension() != kTree) unfinished.push_back(entry.path());
  }
  for (const auto& path : unfinished) remove_tree(path.string());
  // The worker enters it, and cannot list it.
  const bool is_shut = options.group
                           ? ::chown(options.folder.c_str(), static_cast<uid_t>(-1), *options.group) == 0 &&
                                 ::chmod(options.folder.c_str(), 0710) == 0
                           : ::chmod(options.folder.c_str(), 0700) == 0;
  if (!is_shut) return file_error(options.folder, "cannot be closed to others", errno);
  options.folder = std::filesystem::absolute(options.folder, error).lexically_normal().string();
  return std::unique_ptr<PackageStore>{new PackageStore{std::move(options)}};
}

PackageStore::~PackageStore() = default;

bool PackageStore::has(const std::string& digest) const {
  std::error_code error;
  return std::filesystem::is_directory(path_of(digest), error);
}

void PackageStore::verify(const std::string& digest, Completed done) {
  if (thread_.joinable()) thread_.join();
  thread_ = std::jthread{[this, digest, done = std::move(done)] { done(check(digest)); }};
}

Result<std::string> PackageStore::check(const std::string& digest) {
  const std::string path = path_of(digest);
  if (auto opened = open_to_worker(path); !opened) return opened.error();
  const auto wanted = read_all(tree_path_of(digest));
  const auto found = tree_digest(path);
  if (!wanted || !found || *found != *wanted) {
    remove(digest);
    return Error{ErrorCode::PkgInvalid, Blame::Local,
                 "the unpacked package " + digest + " is not what was unpacked any more"};
  }
  std::error_code error;
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now(), error);
  return path;
}

Result<Done> PackageStore::open_to_worker(const std::string& path) const {
  const bool is_open = options_.group ? ::chown(path.c_str(), static_cast<uid_t>(-1), *options_.group) == 0 &&
                                            ::chmod(path.c_str(), 0550) == 0
                                      : ::chmod(path.c_str(), 0500) == 0;
  if (!is_open) return file_error(path, "cannot be opened to the worker", errno);
  return Done{};
}

void PackageStore::close_to_worker(const std::string& path) const {
  ::chmod(path.c_str(), options_.closes_to_self ? 0000 : 0500);
}

void PackageStore::close_all_but(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator{options_.folder, error}) {
    if (entry.is_directory(error) && !entry.path().has_extension() && entry.path() != folder)
      close_to_worker(entry.path().string());
  }
}

void PackageStore::remove(const std::string& digest) {
  remove_tree(path_of(digest));
  ::unlink(tree_path_of(digest).c_str());
}

// What was just unpacked is remembered as it is.
Result<Done> PackageStore::seal(const std::string& digest) {
  const std::string path = path_of(digest);
  if (auto closed = make_read_only(path); !closed) return closed;
  const auto tree = tree_digest(path);
  if (!tree) return tree.error();
  if (auto kept = replace_file(tree_path_of(digest), *tree); !kept) return kept;
  return open_to_worker(path);
}

Result<Done> PackageStore::begin(const std::string& digest) {
  if (thread_.joinable()) thread_.join();
  digest_ = digest;
  const std::string path = path_of(digest).append(kFetching);
  file_ = FileDescriptor{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
  if (!file_.is_open()) return file_error(path, "cannot be written", errno);
  return Done{};
}

Result<Done> PackageStore::append(BytesView part) {
  if (file_.is_open() && write_all(file_.get(), part)) return Done{};
  return file_error(path_of(digest_).append(kFetching), "cannot be written", errno);
}

void PackageStore::complete(Completed done) {
  file_ = FileDescriptor{};
  thread_ = std::jthread{[this, digest = digest_, done = std::move(done)] { done(install(digest)); }};
}

Result<std::string> PackageStore::install(const std::string& digest) {
  const std::string packed = path_of(digest).append(kFetching);
  const auto found = digest_of_file(packed);
  Result<Done> unpacked = Done{};
  if (!found) {
    unpacked = found.error();
  } else if (*found != digest) {
    unpacked = Error{ErrorCode::PkgInvalid, Blame::Peer,
                     "the package that came has the digest " + *found + " and not " + digest};
  } else {
    unpacked = unpack_package(packed, path_of(digest), options_.bounds);
  }
  ::unlink(packed.c_str());
  if (unpacked) unpacked = seal(digest);
  if (!unpacked) {
    remove(digest);
    return unpacked.error();
  }
  prune(digest);
  return path_of(digest);
}

void PackageStore::prune(const std::string& but) {
  std::error_code error;
  std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> all;
  for (const auto& entry : std::filesystem::directory_iterator{options_.folder, error}) {
    if (entry.is_directory(error) && entry.path().filename() != but) {
      all.emplace_back(entry.last_write_time(error), entry.path());
    }
  }
  if (all.size() < options_.packages_kept) return;
  std::ranges::sort(all);
  all.resize(all.size() + 1 - options_.packages_kept);
  for (const auto& [time, path] : all) remove(path.filename().string());
}

}  // namespace windlass::agent
