#include "scheduler/cli/package_zip.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <vector>

namespace windlass::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::time_t kFixedTime = 315'619'200;  // 1980-01-02, within what zip can say in every time zone
constexpr std::uint64_t kRatioFreeBytes = 64ULL * 1024 * 1024;
constexpr std::size_t kBlock = 64 * 1024;

Error package_error(std::string reason) {
  return {ErrorCode::PkgInvalid, Blame::Local, std::move(reason)};
}

struct FreeArchive {
  void operator()(archive* each) const { archive_free(each); }
};
using ArchivePointer = std::unique_ptr<archive, FreeArchive>;
struct FreeEntry {
  void operator()(archive_entry* each) const { archive_entry_free(each); }
};
using EntryPointer = std::unique_ptr<archive_entry, FreeEntry>;

// libarchive turns names and times by the process's locale and zone; both must be the same everywhere.
void fix_locale() {
  std::setlocale(LC_CTYPE, "C.UTF-8");
  ::setenv("TZ", "UTC", 1);
  ::tzset();
}

std::string why(archive* each) {
  const char* const text = archive_error_string(each);
  return text == nullptr ? "unknown error" : text;
}

bool is_left_out(const fs::path& relative) {
  const std::string first = relative.begin()->string();
  return first == ".git" || relative == "local.settings.json" || relative.filename() == ".DS_Store";
}

// Relative paths of files and links, sorted; nothing is followed.
Result<std::vector<fs::path>> list_folder(const fs::path& folder, const ZipBounds& bounds) {
  std::vector<fs::path> found;
  std::error_code error;
  fs::recursive_directory_iterator at{folder, error};
  for (; !error && at != fs::recursive_directory_iterator{}; at.increment(error)) {
    const fs::path relative = at->path().lexically_relative(folder);
    if (is_left_out(relative)) {
      at.disable_recursion_pending();
      continue;
    }
    const fs::file_status status = at->symlink_status(error);
    if (fs::is_directory(status)) continue;
    if (!fs::is_regular_file(status) && !fs::is_symlink(status)) {
      return package_error("'" + at->path().string() + "' is neither a file, a folder nor a link");
    }
    found.push_back(relative);
    if (found.size() > bounds.files_max) {
      return package_error("'" + folder.string() + "' holds more than " + std::to_string(bounds.files_max) +
                           " files");
    }
  }
  if (error) return package_error("'" + folder.string() + "' cannot be read: " + error.message());
  std::ranges::sort(found, {}, [](const fs::path& path) { return path.generic_string(); });
  return found;
}

class ZipWriter final {
 public:
  explicit ZipWriter(archive* out) : out_(out) {}

  Result<Done> add(const fs::path& folder, const fs::path& relative) {
    const fs::path path = folder / relative;
    const std::string name = relative.generic_string();
    std::error_code error;
    const fs::file_status status = fs::symlink_status(path, error);
    const EntryPointer entry{archive_entry_new()};
    archive_entry_update_pathname_utf8(entry.get(), name.c_str());
    archive_entry_set_mtime(entry.get(), kFixedTime, 0);
    if (fs::is_symlink(status)) return add_link(path, name, entry.get());
    const bool is_program = (status.permissions() & fs::perms::owner_exec) != fs::perms::none;
    const auto size = fs::file_size(path, error);
    if (error) return package_error("'" + path.string() + "' cannot be read: " + error.message());
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), is_program ? 0755 : 0644);
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(size));
    if (archive_write_header(out_, entry.get()) != ARCHIVE_OK) return failed();
    return copy(path, size);
  }

 private:
  Result<Done> failed() const { return package_error("the zip cannot be written: " + why(out_)); }

  Result<Done> add_link(const fs::path& path, const std::string& name, archive_entry* entry) {
    std::error_code error;
    const std::string target = fs::read_symlink(path, error).generic_string();
    if (error || !link_stays_inside(name, target)) {
      return package_error("the link '" + name + "' leads out of the folder, to '" + target + "'");
    }
    archive_entry_set_filetype(entry, AE_IFLNK);
    archive_entry_set_perm(entry, 0777);
    archive_entry_update_symlink_utf8(entry, target.c_str());
    if (archive_write_header(out_, entry) != ARCHIVE_OK) return failed();
    return Done{};
  }

  Result<Done> copy(const fs::path& path, std::uint64_t size) {
    std::ifstream in{path, std::ios::binary};
    std::string block(kBlock, '\0');
    std::uint64_t copied = 0;
    while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0) {
      const auto got = static_cast<std::size_t>(in.gcount());
      copied += got;
      if (archive_write_data(out_, block.data(), got) < 0) return failed();
    }
    if (copied != size)
      return package_error("'" + path.string() + "' changed while it was read, or cannot be");
    return Done{};
  }

  archive* out_;
};

bool is_wanted_text(std::string_view path) {
  if (path == "host.json" || path == "package.json" || path == "windlass.json") return true;
  const std::size_t slash = path.find('/');
  return slash != std::string_view::npos && path.substr(slash + 1) == "function.json";
}

class ZipInspector final {
 public:
  ZipInspector(std::string file, std::uint64_t packed, const ZipBounds& bounds)
      : file_(std::move(file)), packed_(packed), bounds_(bounds) {}

  Result<Done> look_at(archive* in, archive_entry* entry) {
    const char* const given = archive_entry_pathname_utf8(entry);
    std::string path = given == nullptr ? std::string{} : std::string{given};
    if (given == nullptr) return refuse("a path that is not UTF-8");
    const auto type = archive_entry_filetype(entry);
    if (type == AE_IFDIR && path.ends_with('/')) path.pop_back();
    if (const std::string problem = path_problem(path); !problem.empty()) {
      return refuse("the path '" + path + "', which " + problem);
    }
    if (++contents_.files > bounds_.files_max) {
      return refuse("more than " + std::to_string(bounds_.files_max) + " files");
    }
    if (!paths_.insert(path).second) return refuse("the path '" + path + "' twice");
    if (type == AE_IFDIR) return Done{};
    if (type == AE_IFLNK) {
      const char* const target = archive_entry_symlink_utf8(entry);
      if (target != nullptr && link_stays_inside(path, target)) return Done{};
      return refuse("the link '" + path + "', which leads out of it");
    }
    if (type != AE_IFREG || archive_entry_hardlink(entry) != nullptr) {
      return refuse("'" + path + "', which is no file, folder or link");
    }
    if (path.starts_with("node_modules/")) contents_.has_node_modules = true;
    if (path.ends_with(".so")) contents_.has_shared_objects = true;
    return read(in, path);
  }

  ZipContents take() { return std::move(contents_); }

 private:
  Error refuse(const std::string& what) const { return package_error("'" + file_ + "' holds " + what); }

  // All of it is unpacked to be counted: what a header says of a size need not be true.
  Result<Done> read(archive* in, const std::string& path) {
    std::string text;
    const bool is_kept = is_wanted_text(path);
    for (;;) {
      const void* block = nullptr;
      std::size_t size = 0;
      la_int64_t offset = 0;
      const int status = archive_read_data_block(in, &block, &size, &offset);
      if (status == ARCHIVE_EOF) break;
      if (status != ARCHIVE_OK) return refuse("'" + path + "', which cannot be unpacked: " + why(in));
      contents_.bytes += size;
      if (contents_.bytes > bounds_.bytes_max) {
        return refuse("more than " + std::to_string(bounds_.bytes_max) + " bytes when unpacked");
      }
      if (contents_.bytes > kRatioFreeBytes && contents_.bytes / bounds_.ratio_max > packed_) {
        return refuse("so much more unpacked than packed that it looks like a bomb");
      }
      if (is_kept) text.append(static_cast<const char*>(block), size);
      if (text.size() > bounds_.text_bytes_max) return refuse("'" + path + "', which is too large");
    }
    if (is_kept) contents_.texts.emplace(path, std::move(text));
    return Done{};
  }

  std::string file_;
  std::uint64_t packed_;
  const ZipBounds& bounds_;
  ZipContents contents_;
  std::set<std::string> paths_;
};

}  // namespace

std::string path_problem(std::string_view path) {
  if (path.empty()) return "is empty";
  if (path.front() == '/' || path.front() == '\\') return "is absolute";
  if (path.size() > 1 && path[1] == ':') return "names a drive";
  if (path.find('\0') != std::string_view::npos || path.find('\\') != std::string_view::npos) {
    return "holds a character that is not for paths";
  }
  if (path.size() > 1024) return "is too long";
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    if (part == "..") return "leads out of the package";
    if (part.empty() || part == ".") return "has an empty part or a dot";
    path.remove_prefix(std::min(path.size(), part.size() + 1));
  }
  return {};
}

bool link_stays_inside(std::string_view path, std::string_view target) {
  if (target.empty() || target.front() == '/' || target.find('\\') != std::string_view::npos) return false;
  const fs::path ends = (fs::path{path}.parent_path() / fs::path{target}).lexically_normal();
  return !ends.empty() && *ends.begin() != ".." && !ends.is_absolute();
}

Result<Done> write_zip(const std::string& folder, const std::string& file, const ZipBounds& bounds) {
  fix_locale();
  const auto paths = list_folder(folder, bounds);
  if (!paths) return paths.error();
  const ArchivePointer out{archive_write_new()};
  if (archive_write_set_format_zip(out.get()) != ARCHIVE_OK ||
      archive_write_set_options(out.get(), "zip:hdrcharset=UTF-8") < ARCHIVE_WARN ||
      archive_write_open_filename(out.get(), file.c_str()) != ARCHIVE_OK) {
    return package_error("'" + file + "' cannot be written: " + why(out.get()));
  }
  ZipWriter writer{out.get()};
  for (const fs::path& each : *paths) {
    if (auto added = writer.add(folder, each); !added) return added;
  }
  if (archive_write_close(out.get()) != ARCHIVE_OK) {
    return package_error("'" + file + "' cannot be written: " + why(out.get()));
  }
  return Done{};
}

Result<ZipContents> inspect_zip(const std::string& file, const ZipBounds& bounds) {
  fix_locale();
  std::error_code error;
  const auto packed = fs::file_size(file, error);
  if (error) return package_error("'" + file + "' cannot be read: " + error.message());
  const ArchivePointer in{archive_read_new()};
  archive_read_support_format_zip_seekable(in.get());
  if (archive_read_open_filename(in.get(), file.c_str(), kBlock) != ARCHIVE_OK) {
    return package_error("'" + file + "' is no zip file: " + why(in.get()));
  }
  ZipInspector inspector{file, packed, bounds};
  for (;;) {
    archive_entry* entry = nullptr;
    const int status = archive_read_next_header(in.get(), &entry);
    if (status == ARCHIVE_EOF) break;
    if (status < ARCHIVE_WARN) return package_error("'" + file + "' is no whole zip file: " + why(in.get()));
    if (auto looked = inspector.look_at(in.get(), entry); !looked) return looked.error();
  }
  return inspector.take();
}

}  // namespace windlass::cli
