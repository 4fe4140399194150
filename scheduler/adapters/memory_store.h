// The store that forgets with its process: for tests and for trying things out. It is the reference of the
// contract suite, so it can be filled up and reopened like the real one.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include "scheduler/seams/state_store.h"

namespace windlass {

// What outlives one MemoryStore, as a file outlives a process.
struct MemoryImage {
  std::map<std::string, Bytes> rows;
  Version version{0};
  std::size_t bytes = 0;  // of all keys and values
  std::size_t bytes_max = std::numeric_limits<std::size_t>::max();
};

class MemoryStore final : public StateStore {
 public:
  MemoryStore() : MemoryStore(std::make_shared<MemoryImage>()) {}
  // Shared, since the image outlives the store that a test closes, and the test looks into it.
  explicit MemoryStore(std::shared_ptr<MemoryImage> image) : image_(std::move(image)) {}

  Result<Snapshot> load() override;
  Result<Version> commit(const WriteBatch& batch, Version expected) override;

 private:
  std::shared_ptr<MemoryImage> image_;
};

}  // namespace windlass
