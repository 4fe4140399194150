// What the state store keeps, as values: text keys with values of bytes, and one version that counts commits.
// The core reads a Snapshot once and writes batches; what the keys and values say is row_text.h's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/base/bytes.h"
#include "protocol/base/ids.h"

namespace windlass {

// Counts the commits of one store; 0 is an empty one.
using Version = StrongId<struct VersionTag, std::uint64_t>;

struct Row {
  std::string key;
  Bytes value;
  friend bool operator==(const Row&, const Row&) = default;
};

struct Write {
  std::string key;
  std::optional<Bytes> value;  // absent: the row is erased, if there is one
  friend bool operator==(const Write&, const Write&) = default;
};

// Applied in order and as a whole: of two writes to one key the later holds.
using WriteBatch = std::vector<Write>;

struct Snapshot {
  Version version{0};
  std::vector<Row> rows;  // by key, each once
};

}  // namespace windlass
