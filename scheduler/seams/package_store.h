// Where packages of applications lie: bytes under their SHA-256, taken in pieces, given in parts. A package
// is here when all of it is and its digest is right; before that nobody but its uploader sees it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/bytes.h"
#include "protocol/base/limits.h"
#include "protocol/base/result.h"

namespace windlass {

namespace limits {

// One part beside its envelope fits a frame, and leaves room in the window for others.
inline constexpr std::size_t kPackagePartBytes = 512 * 1024;
inline constexpr std::size_t kPackagePartPayloadMax = 1024;  // what stands beside the bytes of a part
static_assert(kPackagePartBytes + kPackagePartPayloadMax + kEnvelopeBytesMax <= kFrameBytesMax);
static_assert(kPackagePartPayloadMax + kEnvelopeBytesMax < kFrameBytesLeast);

// Bytes of a part where sessions carry frames of this size.
constexpr std::size_t package_part_bytes(std::uint64_t frame_bytes_max) {
  return std::min<std::uint64_t>(kPackagePartBytes,
                                 frame_bytes_max - kEnvelopeBytesMax - kPackagePartPayloadMax);
}

}  // namespace limits

struct PackageBounds {
  std::uint64_t package_bytes_max = 512ULL * 1024 * 1024;
  std::uint64_t all_bytes_max = 16ULL * 1024 * 1024 * 1024;  // of whole and unfinished ones together
  std::size_t unfinished_max = 16;                           // the oldest makes room
};

struct PackagePiece {
  std::string digest;        // lower-case hex
  std::uint64_t offset = 0;  // 0 begins anew
  std::uint64_t total = 0;   // of the package
  Bytes bytes;
};

struct PackageProgress {
  std::uint64_t next = 0;   // where the next piece belongs
  std::uint64_t total = 0;  // 0: not known
  bool is_whole = false;
};

struct PackagePart {
  std::uint64_t total = 0;
  Bytes bytes;
};

class PackageStore {
 public:
  virtual ~PackageStore() = default;
  // E.RESULT.DUPLICATE: the piece belongs elsewhere, and the reason says where. E.PKG.INVALID: the last piece
  // came and the digest is wrong; nothing is kept. E.LIMIT.FRAME, E.STORE.FULL: too large.
  virtual Result<PackageProgress> put(const PackagePiece& piece) = 0;
  virtual PackageProgress look(const std::string& digest) = 0;
  // Of a whole one; as many bytes as there are, up to bytes_max.
  virtual Result<PackagePart> read(const std::string& digest, std::uint64_t offset,
                                   std::size_t bytes_max) = 0;
  virtual void remove(const std::string& digest) = 0;
  virtual std::vector<std::string> whole() = 0;
};

bool is_package_digest(std::string_view text);
// Whether a piece may be looked at; the error is for whoever sent it.
Result<Done> check_piece(const PackagePiece& piece, const PackageBounds& bounds);

}  // namespace windlass
