// What counts as a change of a file, on a real file system.
#include "protocol/adapters/file_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/certificates.h"

namespace windlass::testing {
namespace {

namespace fs = std::filesystem;

class FileWatchTest : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path{folder.file(name)}.parent_path());
    std::ofstream{folder.file(name)} << text;
  }
  void replace(const std::string& name, const std::string& text) {
    write(name + ".new", text);
    fs::rename(folder.file(name + ".new"), folder.file(name));
  }
  void start(std::vector<std::string> names, FileWatchOptions options = kQuick) {
    for (std::string& name : names) name = folder.file(name);
    watch = std::make_unique<FileWatch>(
        loop, std::move(names),
        [this](const std::vector<std::size_t>& files) {
          told.insert(told.end(), files.begin(), files.end());
          loop.stop();
        },
        options);
  }
  // Runs until the handler was called, or `patience` passed without a word.
  bool is_told(Duration patience = seconds{20}) {
    told.clear();
    LoopAlarm alarm{loop, [this] { loop.stop(); }};
    alarm.set(loop.now().steady + patience);
    loop.run();
    return !told.empty();
  }

  // The slow look is too slow to help: what is told is told by the system.
  static constexpr FileWatchOptions kQuick{milliseconds{20}, milliseconds{200}, seconds{3600}};
  // Longer than any settling above.
  static constexpr Duration kSilence = milliseconds{300};

  TemporaryFolder folder;
  EventLoop loop;
  std::unique_ptr<FileWatch> watch;
  std::vector<std::size_t> told;
};

TEST_F(FileWatchTest, TellsOfARenameOverTheFile) {
  write("a", "1");
  write("b", "1");
  start({"a", "b"});
  replace("b", "2");
  ASSERT_TRUE(is_told());
  EXPECT_EQ(told, std::vector<std::size_t>{1});
  replace("b", "3");  // the watch outlives the file it began with
  EXPECT_TRUE(is_told());
}

TEST_F(FileWatchTest, TellsOfAWriteInPlace) {
  write("a", "1");
  start({"a"});
  write("a", "22");
  EXPECT_TRUE(is_told());
}

TEST_F(FileWatchTest, TellsOfAFileThatComesAndGoes) {
  start({"later/a"});
  write("later/a", "1");
  EXPECT_TRUE(is_told());
  fs::remove(folder.file("later/a"));
  EXPECT_TRUE(is_told());
}

// How a mounted secret is replaced: the name leads through a link to a folder, and the link is swapped.
TEST_F(FileWatchTest, TellsOfASwappedLinkOnTheWay) {
  write("version-1/a", "1");
  write("version-2/a", "2");
  fs::create_directory_symlink("version-1", folder.file("data"));
  fs::create_symlink("data/a", folder.file("a"));
  start({"a"});
  fs::create_directory_symlink("version-2", folder.file("data.new"));
  fs::rename(folder.file("data.new"), folder.file("data"));
  EXPECT_TRUE(is_told());
  write("version-1/a", "111");
  EXPECT_FALSE(is_told(kSilence)) << "the name leads there no more";
  write("version-2/a", "222");
  EXPECT_TRUE(is_told());
}

TEST_F(FileWatchTest, SaysNothingOfNeighbours) {
  write("a", "1");
  start({"a"});
  write("database", "grows");
  EXPECT_FALSE(is_told(kSilence));
}

TEST_F(FileWatchTest, TellsOnceOfManyChanges) {
  write("a", "1");
  start({"a"});
  for (int i = 0; i < 10; ++i) write("a", std::string(static_cast<std::size_t>(i), 'x'));
  EXPECT_TRUE(is_told());
  EXPECT_EQ(told.size(), 1U);
  EXPECT_FALSE(is_told(kSilence));
}

// A write through another name of the file is told to that name's folder alone.
TEST_F(FileWatchTest, LooksByItselfWhereNothingIsTold) {
  write("a", "1");
  fs::create_directory(folder.file("elsewhere"));
  fs::create_hard_link(folder.file("a"), folder.file("elsewhere/a"));
  start({"a"}, {milliseconds{20}, milliseconds{200}, milliseconds{50}});
  write("elsewhere/a", "22");
  EXPECT_TRUE(is_told());
}

}  // namespace
}  // namespace windlass::testing
