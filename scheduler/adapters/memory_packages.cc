#include "scheduler/adapters/memory_packages.h"

#include <algorithm>
#include <utility>

#include "protocol/crypto/digest.h"
#include "protocol/crypto/text_encoding.h"
#include "scheduler/adapters/package_errors.h"

namespace windlass {

std::list<MemoryPackages::Unfinished>::iterator MemoryPackages::find_unfinished(const std::string& digest) {
  return std::ranges::find_if(unfinished_, [&](const Unfinished& each) { return each.digest == digest; });
}

std::uint64_t MemoryPackages::all_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [digest, package] : whole_) bytes += package.size();
  for (const Unfinished& each : unfinished_) bytes += each.total;
  return bytes;
}

Result<PackageProgress> MemoryPackages::put(const PackagePiece& piece) {
  if (auto checked = check_piece(piece, bounds_); !checked) return checked.error();
  if (whole_.contains(piece.digest)) return look(piece.digest);
  auto found = find_unfinished(piece.digest);
  const bool is_new = found == unfinished_.end();
  const bool begins = piece.offset == 0 || is_new;
  if (piece.offset != (begins ? 0 : found->bytes.size()) || (!begins && piece.total != found->total)) {
    return wrong_place(piece, is_new ? 0 : found->bytes.size());
  }
  if (begins) {
    if (!is_new) unfinished_.erase(found);
    while (unfinished_.size() >= bounds_.unfinished_max) unfinished_.pop_front();
    if (all_bytes() + piece.total > bounds_.all_bytes_max) return no_package_room(bounds_);
    found = unfinished_.insert(unfinished_.end(), Unfinished{piece.digest, {}, piece.total});
  }
  found->bytes += piece.bytes;
  if (found->bytes.size() < found->total) return PackageProgress{found->bytes.size(), found->total, false};
  Bytes bytes = std::move(found->bytes);
  unfinished_.erase(found);
  if (hex_encode(view_of(sha256(bytes))) != piece.digest) return wrong_digest(piece.digest);
  whole_.emplace(piece.digest, std::move(bytes));
  return look(piece.digest);
}

PackageProgress MemoryPackages::look(const std::string& digest) {
  if (const auto found = whole_.find(digest); found != whole_.end()) {
    return {found->second.size(), found->second.size(), true};
  }
  const auto found = find_unfinished(digest);
  if (found == unfinished_.end()) return {};
  return {found->bytes.size(), found->total, false};
}

Result<PackagePart> MemoryPackages::read(const std::string& digest, std::uint64_t offset,
                                         std::size_t bytes_max) {
  const auto found = whole_.find(digest);
  if (found == whole_.end()) return no_package(digest);
  if (offset >= found->second.size()) return beyond_end(digest, found->second.size());
  return PackagePart{found->second.size(), found->second.substr(static_cast<std::size_t>(offset), bytes_max)};
}

void MemoryPackages::remove(const std::string& digest) {
  whole_.erase(digest);
}

std::vector<std::string> MemoryPackages::whole() {
  std::vector<std::string> digests;
  for (const auto& [digest, bytes] : whole_) digests.push_back(digest);
  return digests;
}

}  // namespace windlass
