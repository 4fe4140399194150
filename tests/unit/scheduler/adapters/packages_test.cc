#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "scheduler/adapters/file_packages.h"
#include "scheduler/adapters/memory_packages.h"
#include "tests/contract/package_store_contract.h"

namespace windlass {
namespace {

struct MemoryWorld {
  std::unique_ptr<PackageStore> make(const PackageBounds& bounds) const {
    return std::make_unique<MemoryPackages>(bounds);
  }
};

struct FileWorld {
  FileWorld() {
    std::string name = (std::filesystem::temp_directory_path() / "packages-XXXXXX").string();
    CHECK(::mkdtemp(name.data()) != nullptr);
    folder = name;
  }
  ~FileWorld() { std::filesystem::remove_all(folder); }
  FileWorld(const FileWorld&) = delete;
  FileWorld& operator=(const FileWorld&) = delete;
  std::unique_ptr<PackageStore> make(const PackageBounds& bounds) const {
    return std::move(FilePackages::open(folder, bounds).value());
  }
  std::filesystem::path folder;
};

using Worlds = ::testing::Types<MemoryWorld, FileWorld>;
INSTANTIATE_TYPED_TEST_SUITE_P(Both, PackageStoreContract, Worlds);

TEST(FilePackages, GoesOnWithAnUploadAfterARestart) {
  const FileWorld world;
  const std::string digest = hex_encode(view_of(sha256("abcdef")));
  ASSERT_TRUE(world.make({})->put({digest, 0, 6, "abc"}).has_value());
  const auto store = world.make({});
  EXPECT_EQ(store->look(digest).next, 3U);
  EXPECT_TRUE(store->put({digest, 3, 6, "def"})->is_whole);
  EXPECT_TRUE(world.make({})->look(digest).is_whole);
}

TEST(FilePackages, LetsTheOldestUnfinishedUploadGo) {
  const FileWorld world;
  const auto store = world.make({.package_bytes_max = 100, .all_bytes_max = 1000, .unfinished_max = 2});
  const auto count = [&] {
    return std::distance(std::filesystem::directory_iterator{world.folder},
                         std::filesystem::directory_iterator{});
  };
  for (const char c : {'1', '2', '3', '4'})
    ASSERT_TRUE(store->put({std::string(64, c), 0, 9, "a"}).has_value());
  EXPECT_EQ(count(), 2);
  EXPECT_EQ(store->look(std::string(64, '4')).next, 1U);
}

}  // namespace
}  // namespace windlass
