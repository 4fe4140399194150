#include "scheduler/seams/package_store.h"

#include <algorithm>

namespace windlass {

bool is_package_digest(std::string_view text) {
  return text.size() == 64 &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Result<Done> check_piece(const PackagePiece& piece, const PackageBounds& bounds) {
  if (!is_package_digest(piece.digest)) {
    return Error{ErrorCode::ProtoSchema, Blame::Peer,
                 "a package is named by its SHA-256, 64 lower-case hexadecimal digits"};
  }
  if (piece.total > bounds.package_bytes_max) {
    return Error{ErrorCode::LimitFrame, Blame::Peer,
                 "the package has " + std::to_string(piece.total) + " bytes, and at most " +
                     std::to_string(bounds.package_bytes_max) + " are taken (setting packages.bytes_max)"};
  }
  const bool fits = piece.offset <= piece.total && piece.bytes.size() <= piece.total - piece.offset;
  if (piece.total == 0 || piece.bytes.empty() || !fits) {
    return Error{ErrorCode::ProtoSchema, Blame::Peer,
                 "a piece has at least one byte and ends within the package's total"};
  }
  return Done{};
}

}  // namespace windlass
