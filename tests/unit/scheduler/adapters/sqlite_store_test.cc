#include "scheduler/adapters/sqlite_store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

#include "tests/contract/state_store_contract.h"

namespace windlass {
namespace {

namespace fs = std::filesystem;

struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "windlass-store-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file() const { return (path / "state.db").string(); }
  fs::path path;
};

// Tests that do not pull the plug need not wait for the disk.
std::unique_ptr<StateStore> must_open(const std::string& path, std::optional<std::uint32_t> pages_max = {}) {
  auto store = SqliteStore::open({.path = path, .sync = StoreSync::Normal, .pages_max = pages_max});
  EXPECT_TRUE(store.has_value()) << (store ? "" : store.error().reason);
  if (!store) std::abort();
  return std::move(*store);
}

struct SqliteHome {
  Folder folder;
  std::unique_ptr<StateStore> open() { return must_open(folder.file()); }
  std::unique_ptr<StateStore> open_small() { return must_open(folder.file(), 50); }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Sqlite, StateStoreContract, SqliteHome);

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void overwrite(const std::string& path, const std::string& bytes) {
  std::ofstream{path, std::ios::binary | std::ios::trunc} << bytes;
}

std::set<std::string> names_beside(const std::string& path) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path{path}.parent_path()))
    names.insert(entry.path().string());
  return names;
}

// Refused with one sentence that names the file, and not a byte is changed.
void expect_refused(const std::string& path, std::string_view says) {
  const std::string before = bytes_of(path);
  const auto names = names_beside(path);
  const auto store = SqliteStore::open({.path = path});
  ASSERT_FALSE(store.has_value()) << says;
  EXPECT_EQ(store.error().code, ErrorCode::StoreInvalid);
  EXPECT_NE(store.error().reason.find(path), std::string::npos) << store.error().reason;
  EXPECT_NE(store.error().reason.find(says), std::string::npos) << store.error().reason;
  EXPECT_EQ(store.error().reason.find('\n'), std::string::npos);
  EXPECT_EQ(bytes_of(path), before) << "left untouched";
  EXPECT_EQ(names_beside(path), names) << "nothing was put beside it";
}

// A store with enough rows for several pages, all of them in the file itself.
std::string filled_store(const Folder& folder) {
  const auto store = must_open(folder.file());
  WriteBatch batch;
  for (int i = 0; i < 2000; ++i) batch.push_back(put("row/" + std::to_string(i), std::string(100, 'v')));
  must_commit(*store, batch, Version{0});
  return folder.file();
}

TEST(SqliteStore, RefusesAFileThatIsNotADatabase) {
  const Folder folder;
  for (const std::string& bytes :
       {std::string{"x"}, std::string(5000, '\0'), std::string{"[scheduler]\nport = 1\n"}}) {
    overwrite(folder.file(), bytes);
    expect_refused(folder.file(), "is not an SQLite database");
  }
}

TEST(SqliteStore, RefusesADatabaseOfAnotherProgram) {
  const Folder folder;
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(folder.file().c_str(), &database), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(database, "CREATE TABLE rows (key, value)", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  expect_refused(folder.file(), "of another program");
}

TEST(SqliteStore, RefusesANewerSchemaAndNamesBoth) {
  const Folder folder;
  const std::string path = filled_store(folder);
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  ASSERT_EQ(
      sqlite3_exec(database, "UPDATE meta SET value = '9' WHERE name = 'schema'", nullptr, nullptr, nullptr),
      SQLITE_OK);
  sqlite3_close(database);
  expect_refused(path, "schema version '9' and this program knows '1'");
}

TEST(SqliteStore, RefusesACutFile) {
  const Folder folder;
  const std::string path = filled_store(folder);
  const std::string whole = bytes_of(path);
  for (const std::size_t keep : {whole.size() / 2, std::size_t{4096}, std::size_t{4097}, std::size_t{50}}) {
    overwrite(path, whole.substr(0, keep));
    expect_refused(path, keep > 100 ? "is damaged" : "is not an SQLite database");
  }
}

TEST(SqliteStore, RefusesAFileWithAPageOverwritten) {
  const Folder folder;
  const std::string path = filled_store(folder);
  std::string bytes = bytes_of(path);
  ASSERT_GT(bytes.size(), 20U * 4096);
  bytes.replace(10 * 4096, 4096, std::string(4096, '\xa5'));
  overwrite(path, bytes);
  expect_refused(path, "is damaged");
}

// As a kill leaves it: the store file, and a log with `commits` commits of several frames each.
std::string killed_store(const Folder& folder, int commits) {
  const std::string working = (folder.path / "working.db").string();
  auto store = SqliteStore::open({.path = working});
  Version version{0};
  for (int i = 0; i < commits; ++i) {
    WriteBatch batch;
    for (int row = 0; row < 20; ++row) {
      batch.push_back(put("row/" + std::to_string(i * 20 + row), std::string(1000, 'v')));
    }
    version = must_commit(**store, batch, version);
  }
  fs::copy_file(working, folder.file());
  fs::copy_file(working + "-wal", folder.file() + "-wal");
  return folder.file();
}

TEST(SqliteStore, RefusesALogThatIsDamagedBeforeItsLastCommit) {
  constexpr std::size_t kFrame = 24 + 4096;
  const Folder folder;
  const std::string path = killed_store(folder, 10);
  const std::string log = bytes_of(path + "-wal");
  for (const std::size_t at : {std::size_t{0}, std::size_t{17}, 32 + kFrame * 3, 32 + kFrame * 3 + 10,
                               32 + kFrame * 4 + 24 + 2000, log.size() / 2}) {
    std::string changed = log;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    overwrite(path + "-wal", changed);
    expect_refused(path, "is damaged");
    EXPECT_EQ(bytes_of(path + "-wal"), changed) << "the log is left untouched too, byte " << at;
  }
  overwrite(path + "-wal", log);
  EXPECT_EQ(must_open(path)->load()->version, Version{10});
}

TEST(SqliteStore, TakesALogWhoseLastCommitIsTorn) {
  for (const std::size_t missing : {std::size_t{1}, std::size_t{4096}, std::size_t{3 * 4120}}) {
    const Folder folder;
    const std::string path = killed_store(folder, 10);
    const std::string log = bytes_of(path + "-wal");
    overwrite(path + "-wal", log.substr(0, log.size() - missing));
    auto store = SqliteStore::open({.path = path});
    ASSERT_TRUE(store.has_value()) << store.error().reason;
    EXPECT_EQ((*store)->load()->version, Version{9});
  }
  const Folder folder;
  const std::string path = killed_store(folder, 10);
  std::string log = bytes_of(path + "-wal");
  log[log.size() - 5000] = static_cast<char>(log[log.size() - 5000] ^ 1);  // a sector that did not make it
  overwrite(path + "-wal", log);
  auto store = SqliteStore::open({.path = path});
  ASSERT_TRUE(store.has_value()) << store.error().reason;
  EXPECT_EQ((*store)->load()->version, Version{9});
}

TEST(SqliteStore, TakesAnEmptyFileForANewOne) {
  const Folder folder;
  overwrite(folder.file(), "");
  EXPECT_EQ(version_of(*must_open(folder.file())), Version{0});
}

TEST(SqliteStore, SaysWhyAFileCannotBeMade) {
  const auto store = SqliteStore::open({.path = "/nowhere/at/all/state.db"});
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code, ErrorCode::StoreFailed);
  EXPECT_NE(store.error().reason.find("/nowhere/at/all/state.db"), std::string::npos) << store.error().reason;
}

TEST(SqliteStore, IsNotAFolder) {
  const Folder folder;
  const auto store = SqliteStore::open({.path = folder.path.string()});
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code, ErrorCode::StoreInvalid);
}

// Runs `body` in a process of its own and hands back the end of a pipe that it may write to.
struct Child {
  explicit Child(const std::function<void(int)>& body) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    id = ::fork();
    if (id == 0) {
      ::close(ends[0]);
      body(ends[1]);
      ::_exit(0);
    }
    ::close(ends[1]);
    pipe = ends[0];
  }
  ~Child() {
    ::kill(id, SIGKILL);
    ::waitpid(id, nullptr, 0);
    ::close(pipe);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The last number that it wrote, once it is dead.
  std::uint64_t read_last(std::uint64_t before) const {
    std::uint64_t number = before;
    while (::read(pipe, &number, sizeof number) == sizeof number) {
    }
    return number;
  }

  pid_t id = -1;
  int pipe = -1;
};

TEST(SqliteStore, IsHeldByOneProcessAtATime) {
  const Folder folder;
  const std::string path = filled_store(folder);
  const Child child{[&](int out) {
    const auto store = must_open(path);
    must_commit(*store, {put("held", "")}, Version{1});
    const std::uint64_t ready = 1;
    if (::write(out, &ready, sizeof ready) != sizeof ready) return;
    ::pause();
  }};
  std::uint64_t ready = 0;
  ASSERT_EQ(::read(child.pipe, &ready, sizeof ready), static_cast<ssize_t>(sizeof ready));
  const auto store = SqliteStore::open({.path = path});
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code, ErrorCode::StoreFailed);
  EXPECT_NE(store.error().reason.find("in use by another process"), std::string::npos)
      << store.error().reason;
}

// Batch n sets two rows to n and adds row n: a torn or lost batch shows.
TEST(SqliteStore, KilledInTheMiddleOfCommitsItShowsAPrefixWithEverythingThatWasReported) {
  const Folder folder;
  const std::string path = folder.file();
  std::uint64_t reported = 0;
  Random random{42};
  for (int life = 0; life < 12; ++life) {
    {
      Child child{[&](int out) {
        const auto store = must_open(path);
        for (std::uint64_t n = version_of(*store).value() + 1;; ++n) {
          const std::string text = std::to_string(n);
          must_commit(*store,
                      {put("left", text), put("row/" + text, std::string(2000, 'r')), put("right", text)},
                      Version{n - 1});
          if (::write(out, &n, sizeof n) != sizeof n) return;
        }
      }};
      // It has begun once the first number comes; then it dies anywhere.
      std::uint64_t first = 0;
      ASSERT_EQ(::read(child.pipe, &first, sizeof first), static_cast<ssize_t>(sizeof first));
      ::usleep(static_cast<useconds_t>(random.below(20'000)));
      ::kill(child.id, SIGKILL);
      reported = child.read_last(first);
    }
    const auto store = must_open(path);
    const auto rows = rows_of(*store);
    const std::uint64_t version = version_of(*store).value();
    EXPECT_GE(version, reported) << "what was reported is there";
    EXPECT_EQ(rows.at("left"), std::to_string(version));
    EXPECT_EQ(rows.at("right"), std::to_string(version));
    EXPECT_EQ(rows.size(), version + 2) << "every batch up to the last, and none after it";
  }
  EXPECT_GT(reported, 24U) << "the children hardly did anything";
}

TEST(SqliteStore, KilledWhileItIsMadeItIsMadeAgain) {
  const Folder folder;
  for (int life = 0; life < 20; ++life) {
    const Child child{[&](int) { must_open(folder.file()); }};
    ::usleep(static_cast<useconds_t>(life * 300));
    ::kill(child.id, SIGKILL);
    ::waitpid(child.id, nullptr, 0);
    EXPECT_EQ(version_of(*must_open(folder.file())), Version{0});
    if (life % 2 == 0) fs::remove(folder.file());
  }
}

}  // namespace
}  // namespace windlass
