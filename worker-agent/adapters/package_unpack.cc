#include "worker-agent/adapters/package_unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "worker-agent/adapters/files.h"
#include "worker-agent/adapters/package_tree.h"

namespace windlass::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kJsonBytesMax = 1024 * 1024;    // of host.json and each function.json
constexpr std::size_t kFunctionJsonsMax = 4096;       // applications with more functions register by code
constexpr std::size_t kArchiveReadBytes = 64 * 1024;  // at once

struct ReadFree {
  void operator()(archive* reader) const { ::archive_read_free(reader); }
};

Error refused(const std::string& reason) {
  return {ErrorCode::PkgInvalid, Blame::Peer, "the package is refused: " + reason};
}

std::string quoted_name(std::string_view name) {
  std::string out = "\"";
  for (const char c : name.substr(0, 200)) out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  return out + "\"";
}

// The parts of a path that stays below where it starts, or why it does not.
Result<std::vector<std::string>> safe_parts(std::string_view name, const UnpackBounds& bounds) {
  if (name.empty() || name.size() > bounds.path_bytes_max) return refused("a path is empty or too long");
  if (name.front() == '/' || name.find('\\') != std::string_view::npos ||
      (name.size() > 1 && name[1] == ':')) {
    return refused(quoted_name(name) + " is not a relative path with '/'");
  }
  std::vector<std::string> parts;
  while (!name.empty()) {
    const std::size_t end = std::min(name.find('/'), name.size());
    const std::string_view part = name.substr(0, end);
    name.remove_prefix(std::min(end + 1, name.size()));
    if (part.empty() || part == ".") continue;
    if (part == "..") return refused("a path has \"..\" in it");
    if (part.size() > 255) return refused("a name in a path is longer than 255 bytes");
    parts.emplace_back(part);
  }
  if (parts.size() > bounds.depth_max) return refused("a path is too deep");
  return parts;
}

class Unpacker {
 public:
  Unpacker(std::string root, std::uint64_t packed, const UnpackBounds& bounds)
      : root_(std::move(root)), bounds_(bounds) {
    bytes_max_ = std::min(bounds.bytes_max, std::max(bounds.bytes_free_of_ratio, packed * bounds.ratio_max));
  }

  Result<Done> unpack(archive* reader) {
    archive_entry* entry = nullptr;
    for (;;) {
      const int status = ::archive_read_next_header(reader, &entry);
      if (status == ARCHIVE_EOF) break;
      if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return unreadable(reader);
      if (++entries_ > bounds_.entries_max) {
        return refused("it has more than " + std::to_string(bounds_.entries_max) + " entries");
      }
      if (auto done = take(reader, entry); !done) return done;
    }
    if (entries_ == 0) return refused("it is empty");
    return make_links();
  }

 private:
  static Error unreadable(archive* reader) {
    const char* const reason = ::archive_error_string(reader);
    return refused(std::string{"it cannot be read as a zip: "} + (reason == nullptr ? "damaged" : reason));
  }

  Result<Done> take(archive* reader, archive_entry* entry) {
    const char* name = ::archive_entry_pathname_utf8(entry);
    if (name == nullptr) name = ::archive_entry_pathname(entry);
    if (name == nullptr) return refused("an entry has no name that can be read");
    const auto parts = safe_parts(name, bounds_);
    if (!parts) return parts.error();
    if (::archive_entry_is_encrypted(entry) != 0) return refused(quoted_name(name) + " is encrypted");
    if (::archive_entry_hardlink(entry) != nullptr) return refused(quoted_name(name) + " is a hard link");
    if (parts->empty()) return Done{};  // "./"
    fs::path path{root_};
    for (const std::string& part : *parts) path /= part;
    switch (::archive_entry_filetype(entry)) {
      case AE_IFDIR:
        return make_folders(path);
      case AE_IFREG:
        if (auto made = make_folders(path.parent_path()); !made) return made;
        return write_file(reader, path.string(), (::archive_entry_perm(entry) & 0111U) != 0);
      case AE_IFLNK: {
        const char* target = ::archive_entry_symlink_utf8(entry);
        if (target == nullptr) target = ::archive_entry_symlink(entry);
        if (target == nullptr || *target == '\0' || *target == '/') {
          return refused(quoted_name(name) + " is a link that leads out of the package");
        }
        links_.emplace_back(path, target);
        return Done{};
      }
      default:
        return refused(quoted_name(name) + " is neither a file nor a folder");
    }
  }

  static Result<Done> make_folders(const fs::path& path) {
    std::error_code error;
    fs::create_directories(path, error);
    if (std::error_code unknown; error && !fs::is_directory(path, unknown))
      return refused(quoted_name(path.filename().string()) + " is both a file and a folder");
    return Done{};
  }

  Result<Done> write_file(archive* reader, const std::string& path, bool is_program) {
    const FileDescriptor file{
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, is_program ? 0755 : 0644)};
    if (!file.is_open()) {
      if (errno == EEXIST)
        return refused(quoted_name(fs::path{path}.filename().string()) + " is in it twice");
      return file_error(path, "cannot be written", errno);
    }
    std::array<char, kArchiveReadBytes> buffer;
    for (;;) {
      const la_ssize_t count = ::archive_read_data(reader, buffer.data(), buffer.size());
      if (count < 0) return unreadable(reader);
      if (count == 0) return Done{};
      bytes_ += static_cast<std::uint64_t>(count);
      if (bytes_ > bytes_max_) {
        return refused("it unpacks to more than " + std::to_string(bytes_max_) + " bytes");
      }
      if (!write_all(file.get(), {buffer.data(), static_cast<std::size_t>(count)})) {
        return file_error(path, "cannot be written", errno);
      }
    }
  }

  // After every file, so that nothing is written through one; nor is one made through another. Where each
  // leads is asked of the file system, which knows about links to links, and it must lead to something: what
  // is not there yet could come to be anywhere.
  Result<Done> make_links() {
    if (auto apart = check_links_apart(); !apart) return apart;
    for (const auto& [path, target] : links_) {
      if (auto made = make_folders(path.parent_path()); !made) return made;
      if (::symlink(target.c_str(), path.c_str()) != 0) {
        return refused(quoted_name(path.filename().string()) + " is in it twice");
      }
    }
    std::error_code error;
    const fs::path whole = fs::canonical(root_, error);
    if (error) return file_error(root_, "cannot be found again", error.value());
    for (const auto& [path, target] : links_) {
      const fs::path real = fs::canonical(path, error);
      if (error) {
        return refused(quoted_name(path.filename().string()) + " is a link that leads to nothing");
      }
      const auto [end, nothing] = std::mismatch(whole.begin(), whole.end(), real.begin(), real.end());
      if (end != whole.end()) {
        return refused(quoted_name(path.filename().string()) + " is a link that leads out of the package");
      }
    }
    return Done{};
  }

  Result<Done> check_links_apart() const {
    std::set<fs::path> links;
    for (const auto& [path, target] : links_) links.insert(path);
    for (const auto& [path, target] : links_) {
      for (fs::path above = path.parent_path(); above.native().size() > root_.size();
           above = above.parent_path()) {
        if (!links.contains(above)) continue;
        return refused(quoted_name(above.filename().string()) + " is both a link and a folder");
      }
    }
    return Done{};
  }

  std::string root_;
  UnpackBounds bounds_;
  std::uint64_t bytes_max_ = 0;
  std::uint64_t bytes_ = 0;
  std::size_t entries_ = 0;
  std::vector<std::pair<fs::path, std::string>> links_;
};

Result<std::string> read_json(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::string{};
  if (fs::file_size(path, error) > kJsonBytesMax || error) {
    return refused(quoted_name(path.filename().string()) + " is larger than 1 MiB");
  }
  auto bytes = read_all(path.string());
  if (!bytes) return bytes.error();
  return std::string{*bytes};
}

}  // namespace

Result<Done> unpack_package(const std::string& package, const std::string& destination,
                            const UnpackBounds& bounds) {
  std::error_code error;
  const std::uint64_t packed = fs::file_size(package, error);
  if (error) return file_error(package, "cannot be read", error.value());
  const std::string aside = destination + ".unpacking";
  remove_tree(aside);
  if (auto made = make_folder(aside); !made) return made;
  const std::unique_ptr<archive, ReadFree> reader{::archive_read_new()};
  ::archive_read_support_format_zip_seekable(reader.get());
  Result<Done> done = Done{};
  if (::archive_read_open_filename(reader.get(), package.c_str(), kArchiveReadBytes) != ARCHIVE_OK) {
    done = refused("it cannot be read as a zip");
  } else {
    done = Unpacker{aside, packed, bounds}.unpack(reader.get());
  }
  if (done) {
    // The rename must not be on the disk before what it names.
    const FileDescriptor folder{::open(aside.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (!folder.is_open() || ::syncfs(folder.get()) != 0) {
      done = file_error(aside, "cannot be brought to the disk", errno);
    } else if (::rename(aside.c_str(), destination.c_str()) != 0) {
      done = file_error(destination, "cannot be made", errno);
    }
  }
  if (!done) remove_tree(aside);
  return done;
}

Result<PackageTexts> read_package_texts(const std::string& folder) {
  PackageTexts texts;
  auto host = read_json(fs::path{folder} / "host.json");
  if (!host) return host.error();
  texts.host_json = *std::move(host);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator{folder, error}) {
    if (!entry.is_directory(error)) continue;
    auto text = read_json(entry.path() / "function.json");
    if (!text) return text.error();
    if (text->empty()) continue;
    if (texts.function_json.size() == kFunctionJsonsMax) return refused("it has more than 4096 functions");
    texts.function_json.emplace(entry.path().filename().string(), *std::move(text));
  }
  return texts;
}

}  // namespace windlass::agent
