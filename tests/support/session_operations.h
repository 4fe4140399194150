// Random calls on a worker and a scheduler over a bad link, from a seed or from a fuzzer's bytes, with every
// promise checked on the way (session_ledger.h). The same choices make the same run, so a failure replays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "protocol/base/random.h"

namespace windlass::testing {

// Where a run's decisions come from.
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : random_(seed) {}
  explicit Choices(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  // In [0, bound), bound at most 65536.
  std::uint64_t below(std::uint64_t bound);
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  // Out of bytes; a seed never is.
  bool is_spent() const { return !random_ && position_ >= bytes_.size(); }

  // The bytes that would make the same decisions, for a corpus.
  const std::vector<std::uint8_t>& taken() const { return taken_; }

 private:
  std::uint8_t next_byte();

  std::optional<Random> random_;
  std::span<const std::uint8_t> bytes_;
  std::size_t position_ = 0;
  std::vector<std::uint8_t> taken_;
};

struct OperationsReport {
  std::string failure;  // empty: every promise was kept
  std::uint64_t operations = 0;
  std::size_t choices = 0;  // bytes taken by them; what follows is the calm at the end
  std::uint64_t delivered = 0;
  std::uint64_t resumed = 0;
  std::uint64_t ended = 0;
};

// `trace` prints what happens.
OperationsReport run_session_operations(Choices& choices, std::size_t operations_max, bool trace = false);

}  // namespace windlass::testing
