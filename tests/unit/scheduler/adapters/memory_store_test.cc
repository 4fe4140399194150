#include "scheduler/adapters/memory_store.h"

#include "tests/contract/state_store_contract.h"

namespace windlass {
namespace {

struct MemoryHome {
  std::shared_ptr<MemoryImage> image = std::make_shared<MemoryImage>();

  std::unique_ptr<StateStore> open() { return std::make_unique<MemoryStore>(image); }
  std::unique_ptr<StateStore> open_small() {
    image->bytes_max = 200'000;
    return open();
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Memory, StateStoreContract, MemoryHome);

}  // namespace
}  // namespace windlass
