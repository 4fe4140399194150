#include "protocol/base/utf8.h"

#include <array>
#include <cstring>

namespace windlass {

// One automaton in 256 words: the row of a byte holds, at bit position s, the state that follows state s. A
// step is then one load, which does not depend on the state, and one shift: no branch to mispredict in text
// that mixes alphabets. States are six bits wide and multiples of six; what is not listed leads to kWrong.
struct Utf8Table {
  static constexpr std::uint64_t kWrong = Utf8Checker::kWrong;
  static constexpr std::uint64_t kBetween = Utf8Checker::kBetween;
  static constexpr std::uint64_t kOneMore = 12;
  static constexpr std::uint64_t kTwoMore = 18;
  static constexpr std::uint64_t kThreeMore = 24;
  static constexpr std::uint64_t kAfterE0 = 30;  // the next byte may not make an overlong form
  static constexpr std::uint64_t kAfterEd = 36;  // nor a surrogate
  static constexpr std::uint64_t kAfterF0 = 42;  // nor an overlong form
  static constexpr std::uint64_t kAfterF4 = 48;  // nor pass U+10FFFF

  std::array<std::uint64_t, 256> rows{};

  constexpr Utf8Table() {
    on(0x00, 0x7F, kBetween, kBetween);
    on(0xC2, 0xDF, kBetween, kOneMore);
    on(0xE0, 0xEF, kBetween, kTwoMore);
    on(0xF0, 0xF4, kBetween, kThreeMore);
    on(0xE0, 0xE0, kBetween, kAfterE0);
    on(0xED, 0xED, kBetween, kAfterEd);
    on(0xF0, 0xF0, kBetween, kAfterF0);
    on(0xF4, 0xF4, kBetween, kAfterF4);
    on(0x80, 0xBF, kOneMore, kBetween);
    on(0x80, 0xBF, kTwoMore, kOneMore);
    on(0x80, 0xBF, kThreeMore, kTwoMore);
    on(0xA0, 0xBF, kAfterE0, kOneMore);
    on(0x80, 0x9F, kAfterEd, kOneMore);
    on(0x90, 0xBF, kAfterF0, kTwoMore);
    on(0x80, 0x8F, kAfterF4, kTwoMore);
  }

  // A later rule for the same bytes and state takes the place of an earlier one.
  constexpr void on(unsigned first, unsigned last, std::uint64_t from, std::uint64_t to) {
    for (unsigned byte = first; byte <= last; ++byte) {
      rows[byte] = (rows[byte] & ~(std::uint64_t{63} << from)) | (to << from);
    }
  }
};

namespace {

constexpr Utf8Table kTable;
constexpr std::size_t kBlockBytes = 32;

bool is_ascii_block(const char* at) {
  std::uint64_t words[kBlockBytes / 8];
  std::memcpy(words, at, sizeof words);
  return ((words[0] | words[1] | words[2] | words[3]) & 0x8080808080808080ULL) == 0;
}

// The low six bits are the state; the rest is left over from the row and falls out of the next shift.
std::uint64_t step(std::uint64_t state, const char* at, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    state = kTable.rows[static_cast<unsigned char>(at[i])] >> (state & 63U);
  }
  return state & 63U;
}

}  // namespace

bool Utf8Checker::handle_bytes(BytesView bytes) {
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t state = state_;
  for (; left >= kBlockBytes && state != kWrong; at += kBlockBytes, left -= kBlockBytes) {
    if (state == kBetween && is_ascii_block(at)) continue;
    state = step(state, at, kBlockBytes);
  }
  state_ = state == kWrong ? kWrong : step(state, at, left);
  return state_ != kWrong;
}

bool is_utf8(BytesView text) {
  Utf8Checker checker;
  return checker.handle_bytes(text) && checker.is_complete();
}

}  // namespace windlass
