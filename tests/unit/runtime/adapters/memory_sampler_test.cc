#include "runtime/adapters/memory_sampler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace windlass::runtime {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;

// A file system as a process finds it.
class MemorySampler : public ::testing::Test {
 protected:
  MemorySampler() {
    std::string name = ::testing::TempDir() + "memory-XXXXXX";
    root = std::string{::mkdtemp(name.data())} + "/";
    write("proc/meminfo", "MemTotal:       4096000 kB\nMemFree: 1 kB\nMemAvailable:   1000 kB\n");
    resident(100 * kMiB);
  }
  ~MemorySampler() override { std::filesystem::remove_all(root); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path{root + path}.parent_path());
    std::ofstream{root + path} << text;
  }
  void resident(std::uint64_t bytes) {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    write("proc/self/statm", "999999999 " + std::to_string(bytes / page) + " 1 1 0 1 0\n");
  }
  std::string root;
};

TEST_F(MemorySampler, WithoutALimitItIsTheProcessAgainstTheMachineWhateverOthersUse) {
  resident(400 * kMiB);
  EXPECT_NEAR(*sample_memory(0, root), 0.1, 0.001) << "though only 1 MB is available on the machine";
}

TEST_F(MemorySampler, ALimitThatWasSetHoldsBeforeAnyOther) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "1048576\n");
  write("sys/fs/cgroup/memory.current", "1048576\n");
  EXPECT_NEAR(*sample_memory(200 * kMiB, root), 0.5, 0.001);
}

TEST_F(MemorySampler, TheOwnGroupCountsWithoutTheFilesItCaches) {
  write("proc/self/cgroup", "0::/system.slice/windlass-runtime.service\n");
  const std::string own = "sys/fs/cgroup/system.slice/windlass-runtime.service/";
  write(own + "memory.max", "1000\n");
  write(own + "memory.current", "900\n");
  write(own + "memory.stat", "anon 1\ninactive_file 200\n");
  write("sys/fs/cgroup/memory.max", "10\n");
  write("sys/fs/cgroup/memory.current", "10\n");
  EXPECT_DOUBLE_EQ(*sample_memory(0, root), 0.7);
}

TEST_F(MemorySampler, ALimitAboveTheOwnGroupIsHeldAgainstWhatTheOwnGroupUses) {
  write("proc/self/cgroup", "0::/tenants/runtime\n");
  write("sys/fs/cgroup/tenants/runtime/memory.max", "max\n");
  write("sys/fs/cgroup/tenants/runtime/memory.current", "250\n");
  write("sys/fs/cgroup/tenants/memory.max", "1000\n");
  write("sys/fs/cgroup/tenants/memory.current", "990\n");
  EXPECT_DOUBLE_EQ(*sample_memory(0, root), 0.25) << "what the neighbours use is theirs";
}

TEST_F(MemorySampler, AContainerThatSeesOnlyItsOwnGroupIsMeasuredByThat) {
  write("proc/self/cgroup", "0::/docker/0123\n");
  write("sys/fs/cgroup/memory.max", "1000\n");
  write("sys/fs/cgroup/memory.current", "500\n");
  EXPECT_DOUBLE_EQ(*sample_memory(0, root), 0.5);
}

TEST_F(MemorySampler, TheFirstVersionOfControlGroupsIsReadToo) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/runtime\n0::/other\n");
  write("sys/fs/cgroup/memory/runtime/memory.limit_in_bytes", "1000\n");
  write("sys/fs/cgroup/memory/runtime/memory.usage_in_bytes", "800\n");
  write("sys/fs/cgroup/memory/runtime/memory.stat", "total_inactive_file 300\n");
  EXPECT_DOUBLE_EQ(*sample_memory(0, root), 0.5);
  write("sys/fs/cgroup/memory/runtime/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_NEAR(*sample_memory(0, root), 0.025, 0.001) << "that number means none";
}

TEST_F(MemorySampler, NothingIsSaidWhereTheSystemDoesNotTell) {
  EXPECT_FALSE(sample_memory(0, root + "nowhere/"));
  EXPECT_FALSE(sample_memory(kMiB, root + "nowhere/"));
}

TEST(MemorySamplerHere, ThisProcessUsesSomeOfItsMemory) {
  const auto share = sample_memory();
  ASSERT_TRUE(share);
  EXPECT_GT(*share, 0.0);
  EXPECT_LT(*share, 1.0);
}

}  // namespace
}  // namespace windlass::runtime
