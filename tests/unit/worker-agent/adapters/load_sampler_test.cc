#include "worker-agent/adapters/load_sampler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace windlass::agent {
namespace {

// A file system as a process finds it.
class LoadSamplerTest : public ::testing::Test {
 protected:
  LoadSamplerTest() {
    std::string name = ::testing::TempDir() + "load-XXXXXX";
    root = std::string{::mkdtemp(name.data())} + "/";
    write("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:   400 kB\n");
  }
  ~LoadSamplerTest() override { std::filesystem::remove_all(root); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path{root + path}.parent_path());
    std::ofstream{root + path} << text;
  }
  std::optional<double> memory() { return LoadSampler{root, root}.sample().mem_pct; }

  std::string root;
};

TEST_F(LoadSamplerTest, WithoutALimitTheMachinesMemoryCounts) {
  EXPECT_DOUBLE_EQ(*memory(), 60);
  write("proc/self/cgroup", "0::/system.slice/windlass-agent.service\n");
  write("sys/fs/cgroup/system.slice/windlass-agent.service/memory.max", "max\n");
  write("sys/fs/cgroup/system.slice/windlass-agent.service/memory.current", "900\n");
  EXPECT_DOUBLE_EQ(*memory(), 60);
}

TEST_F(LoadSamplerTest, TheLimitOfTheOwnGroupCountsAndNotThatOfTheRoot) {
  write("proc/self/cgroup", "0::/system.slice/windlass-agent.service\n");
  const std::string own = "sys/fs/cgroup/system.slice/windlass-agent.service/";
  write(own + "memory.max", "1000\n");
  write(own + "memory.current", "900\n");
  write(own + "memory.stat", "anon 1\ninactive_file 200\n");
  write("sys/fs/cgroup/memory.max", "10\n");
  write("sys/fs/cgroup/memory.current", "10\n");
  EXPECT_DOUBLE_EQ(*memory(), 70);
}

TEST_F(LoadSamplerTest, TheFirstVersionOfControlGroupsIsReadToo) {
  write("proc/self/cgroup", "5:cpu:/x\n4:memory:/agent\n0::/other\n");
  write("sys/fs/cgroup/memory/agent/memory.limit_in_bytes", "2000\n");
  write("sys/fs/cgroup/memory/agent/memory.usage_in_bytes", "500\n");
  EXPECT_DOUBLE_EQ(*memory(), 25);
}

TEST_F(LoadSamplerTest, NothingIsSaidWhereTheSystemDoesNotTell) {
  std::filesystem::remove(root + "proc/meminfo");
  EXPECT_FALSE(memory());
}

}  // namespace
}  // namespace windlass::agent
