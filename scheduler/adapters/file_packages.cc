#include "scheduler/adapters/file_packages.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include "protocol/crypto/text_encoding.h"
#include "scheduler/adapters/package_errors.h"

namespace windlass {
namespace {

namespace fs = std::filesystem;

Error file_error(const fs::path& file, std::string_view what, int error) {
  const ErrorCode code = error == ENOSPC || error == EDQUOT ? ErrorCode::StoreFull : ErrorCode::StoreFailed;
  return {
      code, Blame::Local,
      "package file '" + file.string() + "' cannot be " + std::string{what} + ": " + std::strerror(error)};
}

class PackageFile final {
 public:
  PackageFile(const fs::path& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~PackageFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  PackageFile(const PackageFile&) = delete;
  PackageFile& operator=(const PackageFile&) = delete;
  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }

 private:
  int fd_;
};

bool write_all(int fd, BytesView bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::uint64_t file_size_of(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  return error ? 0 : size;
}

// Read back from the file, since that is what will be handed out.
std::optional<std::string> digest_of(int fd) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
  if (!context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) return std::nullopt;
  Bytes buffer(limits::kPackagePartBytes, '\0');
  off_t at = 0;
  for (;;) {
    const ssize_t got = ::pread(fd, buffer.data(), buffer.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    EVP_DigestUpdate(context.get(), buffer.data(), static_cast<std::size_t>(got));
    at += got;
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned size = 0;
  EVP_DigestFinal_ex(context.get(), hash.data(), &size);
  return hex_encode(BytesView{reinterpret_cast<const char*>(hash.data()), size});
}

}  // namespace

Result<std::unique_ptr<FilePackages>> FilePackages::open(fs::path folder, const PackageBounds& bounds) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) fs::permissions(folder, fs::perms::owner_all, error);  // code is nobody else's business
  if (error) return file_error(folder, "made a folder", error.value());
  return std::unique_ptr<FilePackages>{new FilePackages(std::move(folder), bounds)};
}

Result<PackageProgress> FilePackages::put(const PackagePiece& piece) {
  if (auto checked = check_piece(piece, bounds_); !checked) return checked.error();
  const PackageProgress known = look(piece.digest);
  if (known.is_whole) return known;
  if (piece.offset != 0 && piece.offset != known.next) return wrong_place(piece, known.next);
  if (piece.offset == 0) {
    if (auto room = make_room(piece); !room) return room.error();
  }
  if (auto written = write(piece); !written) return written.error();
  const std::uint64_t next = piece.offset + piece.bytes.size();
  if (next < piece.total) return PackageProgress{next, piece.total, false};
  return finish(piece);
}

Result<Done> FilePackages::make_room(const PackagePiece& piece) {
  std::uint64_t bytes = 0;
  std::vector<std::pair<fs::file_time_type, fs::path>> unfinished;
  std::error_code ignored;  // a file that vanished meanwhile needs no room
  for (const fs::directory_entry& each : fs::directory_iterator{folder_, ignored}) {
    if (each.path() == part_file(piece.digest)) continue;
    bytes += each.file_size(ignored);
    if (each.path().extension() == ".part")
      unfinished.emplace_back(each.last_write_time(ignored), each.path());
  }
  std::ranges::sort(unfinished);
  for (std::size_t i = 0; i + bounds_.unfinished_max <= unfinished.size(); ++i) {
    bytes -= std::min(bytes, file_size_of(unfinished[i].second));
    fs::remove(unfinished[i].second, ignored);
  }
  if (bytes + piece.total > bounds_.all_bytes_max) return no_package_room(bounds_);
  return Done{};
}

Result<Done> FilePackages::write(const PackagePiece& piece) const {
  const fs::path path = part_file(piece.digest);
  const PackageFile file{path, O_WRONLY | O_CREAT | (piece.offset == 0 ? O_TRUNC : O_APPEND)};
  if (!file.is_open()) return file_error(path, "opened", errno);
  if (write_all(file.fd(), piece.bytes)) return Done{};
  const int error = errno;
  // Half a piece would shift all others.
  if (::ftruncate(file.fd(), static_cast<off_t>(piece.offset)) != 0) ::unlink(path.c_str());
  return file_error(path, "written", error);
}

Result<PackageProgress> FilePackages::finish(const PackagePiece& piece) {
  const fs::path part = part_file(piece.digest);
  {
    const PackageFile file{part, O_RDONLY};
    if (!file.is_open()) return file_error(part, "opened", errno);
    if (::fsync(file.fd()) != 0) return file_error(part, "synced", errno);
    const auto digest = digest_of(file.fd());
    if (!digest) return file_error(part, "read", errno);
    if (*digest != piece.digest) {
      ::unlink(part.c_str());
      return wrong_digest(piece.digest);
    }
  }
  const fs::path whole = whole_file(piece.digest);
  if (::rename(part.c_str(), whole.c_str()) != 0) return file_error(whole, "renamed", errno);
  const PackageFile folder{folder_, O_RDONLY | O_DIRECTORY};
  if (!folder.is_open() || ::fsync(folder.fd()) != 0) return file_error(folder_, "synced", errno);
  return PackageProgress{piece.total, piece.total, true};
}

PackageProgress FilePackages::look(const std::string& digest) {
  if (!is_package_digest(digest)) return {};
  std::error_code error;
  if (const auto size = fs::file_size(whole_file(digest), error); !error) return {size, size, true};
  return {file_size_of(part_file(digest)), 0, false};
}

Result<PackagePart> FilePackages::read(const std::string& digest, std::uint64_t offset,
                                       std::size_t bytes_max) {
  if (!is_package_digest(digest)) return no_package(digest);
  const fs::path path = whole_file(digest);
  const PackageFile file{path, O_RDONLY};
  if (!file.is_open()) return errno == ENOENT ? no_package(digest) : file_error(path, "opened", errno);
  struct stat facts {};
  if (::fstat(file.fd(), &facts) != 0) return file_error(path, "read", errno);
  PackagePart part{static_cast<std::uint64_t>(facts.st_size), {}};
  if (offset >= part.total) return beyond_end(digest, part.total);
  part.bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(bytes_max, part.total - offset)));
  std::size_t used = 0;
  while (used < part.bytes.size()) {
    const ssize_t got = ::pread(file.fd(), part.bytes.data() + used, part.bytes.size() - used,
                                static_cast<off_t>(offset + used));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return file_error(path, "read", got == 0 ? EIO : errno);
    used += static_cast<std::size_t>(got);
  }
  return part;
}

void FilePackages::remove(const std::string& digest) {
  if (!is_package_digest(digest)) return;
  std::error_code ignored;  // it is tried again at the next start
  fs::remove(whole_file(digest), ignored);
}

std::vector<std::string> FilePackages::whole() {
  std::vector<std::string> digests;
  std::error_code ignored;
  for (const fs::directory_entry& each : fs::directory_iterator{folder_, ignored}) {
    std::string name = each.path().filename().string();
    if (is_package_digest(name)) digests.push_back(std::move(name));
  }
  return digests;
}

}  // namespace windlass
