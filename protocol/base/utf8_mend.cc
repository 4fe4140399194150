#include "protocol/base/utf8_mend.h"

#include <algorithm>

#include "protocol/base/utf8.h"

namespace windlass {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Bytes of the character that `text` begins with, or of the part of one that is to be replaced.
struct Piece {
  std::size_t bytes = 1;
  bool is_good = false;
};

Piece first_piece(BytesView text) {
  Utf8Checker checker;
  const std::size_t most = std::min<std::size_t>(text.size(), 4);
  for (std::size_t size = 1; size <= most; ++size) {
    // The byte that makes it wrong begins the next piece, unless it is the first.
    if (!checker.handle_bytes(text.substr(size - 1, 1))) return {std::max<std::size_t>(1, size - 1), false};
    if (checker.is_complete()) return {size, true};
  }
  return {most, false};
}

}  // namespace

std::string mended_utf8(BytesView text) {
  if (is_utf8(text)) return std::string{text};
  std::string mended;
  mended.reserve(text.size() + 2 * kReplacement.size());
  while (!text.empty()) {
    const Piece piece = first_piece(text);
    mended.append(piece.is_good ? text.substr(0, piece.bytes) : kReplacement);
    text.remove_prefix(piece.bytes);
  }
  return mended;
}

}  // namespace windlass
