// What the agent keeps on disk: identity, journal, and the load it reads from the system's files.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "worker-agent/adapters/instance_id.h"
#include "worker-agent/adapters/journal_file.h"
#include "worker-agent/adapters/load_sampler.h"

namespace windlass::agent {
namespace {

class StateFiles : public ::testing::Test {
 protected:
  StateFiles() {
    std::string name = ::testing::TempDir() + "windlass_state_XXXXXX";
    folder = ::mkdtemp(name.data());
  }
  ~StateFiles() override { std::filesystem::remove_all(folder); }
  std::string path(const std::string& name) const { return folder + "/" + name; }
  void put(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path{path(name)}.parent_path());
    std::ofstream{path(name)} << text;
  }
  Bytes get(const std::string& name) const { return read_all(path(name)).value(); }

  std::string folder;
};

TEST_F(StateFiles, AnIdentityIsMadeOnceAndKept) {
  const auto first = load_instance_id(path("id"));
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->starts_with("w-"));
  EXPECT_EQ(*load_instance_id(path("id")), *first);
  EXPECT_NE(*load_instance_id(path("other")), *first);
  EXPECT_FALSE(std::filesystem::exists(path("id.new")));
}

TEST_F(StateFiles, AnIdentityThatCannotBeUnderstoodIsRefusedAndStays) {
  for (const char* text : {"", "\n", "two words\n", "w-1\nw-2\n", "\xFF\n"}) {
    put("id", text);
    EXPECT_FALSE(load_instance_id(path("id"))) << text;
    EXPECT_EQ(get("id"), text);
  }
  std::filesystem::create_directories(path("folder"));
  EXPECT_FALSE(load_instance_id(path("folder")));
}

TEST_F(StateFiles, ALockIsForOne) {
  const auto held = lock_file(path("lock"), "in use");
  ASSERT_TRUE(held);
  const auto second = lock_file(path("lock"), "in use");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason, "in use");
}

// Waits for the writer's thread.
class Writes {
 public:
  void start(JournalFile& file) {
    file.start([this](const Result<Done>& result) {
      const std::lock_guard lock{mutex_};
      ++done_;
      if (!result) failure_ = result.error().reason;
      changed_.notify_all();
    });
  }
  std::string wait_for(int count) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return done_ >= count; });
    return failure_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int done_ = 0;
  std::string failure_;
};

TEST_F(StateFiles, AJournalKeepsWhatWasWrittenAndDropsATornTail) {
  {
    auto file = JournalFile::open(path("journal"));
    ASSERT_TRUE(file);
    EXPECT_EQ((*file)->contents(), "");
    Writes writes;
    writes.start(**file);
    (*file)->write({"one,"});
    EXPECT_EQ(writes.wait_for(1), "");
    (*file)->write({"two,torn"});
    EXPECT_EQ(writes.wait_for(2), "");
  }
  auto again = JournalFile::open(path("journal"));
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)->contents(), "one,two,torn");
  ASSERT_TRUE((*again)->keep(8));
  Writes writes;
  writes.start(**again);
  (*again)->write({"three"});
  EXPECT_EQ(writes.wait_for(1), "");
  EXPECT_EQ(get("journal"), "one,two,three");
}

TEST_F(StateFiles, AReplacedJournalIsAppendedTo) {
  auto file = JournalFile::open(path("journal"));
  ASSERT_TRUE(file);
  Writes writes;
  writes.start(**file);
  (*file)->write({"old"});
  EXPECT_EQ(writes.wait_for(1), "");
  (*file)->write({"new,", true});
  EXPECT_EQ(writes.wait_for(2), "");
  (*file)->write({"more"});
  EXPECT_EQ(writes.wait_for(3), "");
  EXPECT_EQ(get("journal"), "new,more");
  EXPECT_FALSE(std::filesystem::exists(path("journal.new")));
}

TEST_F(StateFiles, LoadIsOfTheMachineOrOfTheContainerIfItHasALimit) {
  put("proc/stat", "cpu  100 0 100 800 0 0 0 0 0 0\n");
  put("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    250 kB\n");
  LoadSampler sampler{folder, folder + "/"};
  put("proc/stat", "cpu  150 0 100 850 0 0 0 0 0 0\n");
  const LoadSample machine = sampler.sample();
  EXPECT_EQ(machine.cpu_pct, 50);
  EXPECT_EQ(machine.mem_pct, 75);
  ASSERT_TRUE(machine.disk_pct.has_value());
  EXPECT_GE(*machine.disk_pct, 0);
  EXPECT_LE(*machine.disk_pct, 100);
  put("proc/self/cgroup", "0::/\n");
  put("sys/fs/cgroup/memory.max", "2000\n");
  put("sys/fs/cgroup/memory.current", "900\n");
  put("sys/fs/cgroup/memory.stat", "anon 500\ninactive_file 400\n");
  EXPECT_EQ(sampler.sample().mem_pct, 25);
  put("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(sampler.sample().mem_pct, 75);
}

}  // namespace
}  // namespace windlass::agent
