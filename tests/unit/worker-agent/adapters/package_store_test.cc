#include "worker-agent/adapters/package_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "protocol/crypto/digest.h"
#include "protocol/crypto/text_encoding.h"
#include "tests/support/zip_package.h"
#include "worker-agent/adapters/package_tree.h"

namespace windlass::agent {
namespace {

using testing::zip_of;
namespace fs = std::filesystem;

class PackageStoreTest : public ::testing::Test {
 protected:
  PackageStoreTest() {
    std::string name = ::testing::TempDir() + "windlass_packages_XXXXXX";
    folder = ::mkdtemp(name.data());
    store = *PackageStore::open({.folder = folder + "/packages"});
  }
  ~PackageStoreTest() override {
    store.reset();
    remove_tree(folder);
  }
  // Its digest.
  std::string install(const std::string& index) {
    const std::string zip = zip_of({{"host.json", "{}"}, {"src/index.js", index}});
    const std::string digest = hex_encode(view_of(sha256(zip)));
    EXPECT_TRUE(store->begin(digest));
    EXPECT_TRUE(store->append(zip));
    std::promise<Result<std::string>> done;
    store->complete([&](Result<std::string> found) { done.set_value(std::move(found)); });
    EXPECT_TRUE(done.get_future().get());
    return digest;
  }
  Result<std::string> verify(const std::string& digest) {
    std::promise<Result<std::string>> done;
    store->verify(digest, [&](Result<std::string> found) { done.set_value(std::move(found)); });
    return done.get_future().get();
  }
  static mode_t mode_of(const std::string& path) {
    struct stat facts {};
    EXPECT_EQ(::stat(path.c_str(), &facts), 0);
    return facts.st_mode & 07777U;
  }

  std::string folder;
  std::unique_ptr<PackageStore> store;
};

TEST_F(PackageStoreTest, APackageIsUnpackedReadOnly) {
  const std::string digest = install("// one");
  const std::string path = folder + "/packages/" + digest;
  EXPECT_EQ(mode_of(path), 0500U);
  EXPECT_EQ(mode_of(path + "/src"), 0555U);
  EXPECT_EQ(mode_of(path + "/src/index.js"), 0444U);
  EXPECT_EQ(mode_of(folder + "/packages"), 0700U);
}

TEST_F(PackageStoreTest, OneThatIsAsItWasUnpackedIsUsedAgain) {
  const std::string digest = install("// one");
  const auto found = verify(digest);
  ASSERT_TRUE(found) << found.error().reason;
  EXPECT_TRUE(fs::exists(*found + "/src/index.js"));
}

TEST_F(PackageStoreTest, OneOfAnEarlierGroupIsOpenedToThePresentOne) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files to other groups";
  const auto group_of = [](const std::string& path) {
    struct stat facts {};
    EXPECT_EQ(::stat(path.c_str(), &facts), 0);
    return facts.st_gid;
  };
  store = *PackageStore::open({.folder = folder + "/packages", .group = 60800});
  const std::string digest = install("// one");
  EXPECT_EQ(group_of(folder + "/packages/" + digest), 60800U);
  store = *PackageStore::open({.folder = folder + "/packages", .group = 60801});
  EXPECT_EQ(group_of(folder + "/packages"), 60801U);  // so that the earlier group reaches nothing below it
  const auto found = verify(digest);
  ASSERT_TRUE(found) << found.error().reason;
  EXPECT_EQ(group_of(*found), 60801U);
  EXPECT_EQ(mode_of(*found), 0550U);
}

TEST_F(PackageStoreTest, OneThatWasChangedInAnyWayIsRemoved) {
  const auto change = [&](const std::function<void(const std::string&)>& how) {
    const std::string digest = install("// one");
    const std::string path = folder + "/packages/" + digest;
    ::chmod(path.c_str(), 0700);
    ::chmod((path + "/src").c_str(), 0700);
    ::chmod((path + "/src/index.js").c_str(), 0600);
    how(path);
    EXPECT_FALSE(verify(digest));
    EXPECT_FALSE(store->has(digest));
  };
  change([](const std::string& path) { std::ofstream{path + "/src/index.js"} << "// two"; });
  change([](const std::string& path) { std::ofstream{path + "/src/more.js"} << "// two"; });
  change([](const std::string& path) { fs::remove(path + "/host.json"); });
  change([](const std::string& path) { fs::create_symlink("/etc/passwd", path + "/src/link"); });
  change([](const std::string& path) { ::chmod((path + "/src/index.js").c_str(), 0755); });
  change([](const std::string& path) { fs::remove(path + ".tree"); });  // of a version that kept none
}

TEST_F(PackageStoreTest, ANewWorkerFindsOnlyItsOwnPackageOpen) {
  store = *PackageStore::open({.folder = folder + "/packages", .closes_to_self = true});
  const std::string first = install("// one");
  const std::string second = install("// two");
  store->close_all_but(folder + "/packages/" + second);
  EXPECT_EQ(mode_of(folder + "/packages/" + first), 0000U);
  EXPECT_EQ(mode_of(folder + "/packages/" + second), 0500U);
  EXPECT_TRUE(verify(first));  // and is opened when it is wanted
  EXPECT_EQ(mode_of(folder + "/packages/" + first), 0500U);
  store->close_all_but({});  // by another worker, before the package was used
  EXPECT_TRUE(store->open_to_worker(folder + "/packages/" + first));
  EXPECT_EQ(mode_of(folder + "/packages/" + first), 0500U);
}

}  // namespace
}  // namespace windlass::agent
