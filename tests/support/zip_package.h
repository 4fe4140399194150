// Packages for tests, good and hostile: zips made in memory.
#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace windlass::testing {

struct ZipEntry {
  std::string path;
  std::string text = {};
  std::string link_to = {};  // a symbolic link
};

inline std::string zip_of(const std::vector<ZipEntry>& entries) {
  std::string bytes(64 * 1024 * 1024, '\0');
  std::size_t used = 0;
  archive* const zip = archive_write_new();
  archive_write_set_format_zip(zip);
  EXPECT_EQ(archive_write_open_memory(zip, bytes.data(), bytes.size(), &used), ARCHIVE_OK);
  for (const ZipEntry& each : entries) {
    archive_entry* const entry = archive_entry_new();
    archive_entry_set_pathname(entry, each.path.c_str());
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_filetype(entry, each.link_to.empty() ? AE_IFREG : AE_IFLNK);
    if (!each.link_to.empty()) archive_entry_set_symlink(entry, each.link_to.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(each.text.size()));
    EXPECT_EQ(archive_write_header(zip, entry), ARCHIVE_OK);
    archive_write_data(zip, each.text.data(), each.text.size());
    archive_entry_free(entry);
  }
  archive_write_close(zip);
  archive_write_free(zip);
  bytes.resize(used);
  return bytes;
}

}  // namespace windlass::testing
