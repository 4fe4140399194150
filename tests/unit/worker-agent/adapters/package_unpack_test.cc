#include "worker-agent/adapters/package_unpack.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/zip_package.h"

namespace windlass::agent {
namespace {

using testing::zip_of;
using testing::ZipEntry;
namespace fs = std::filesystem;

class UnpackTest : public ::testing::Test {
 protected:
  UnpackTest() {
    std::string name = ::testing::TempDir() + "windlass_unpack_XXXXXX";
    folder = ::mkdtemp(name.data());
  }
  ~UnpackTest() override { fs::remove_all(folder); }
  // Empty: it was unpacked.
  std::string refusal(const std::string& bytes, const UnpackBounds& bounds = {}) {
    std::ofstream{folder + "/p.zip", std::ios::binary} << bytes;
    const auto done = unpack_package(folder + "/p.zip", folder + "/out", bounds);
    if (done) return {};
    EXPECT_EQ(done.error().code, ErrorCode::PkgInvalid);
    EXPECT_FALSE(fs::exists(folder + "/out")) << "nothing may be left of it";
    EXPECT_FALSE(fs::exists(folder + "/out.unpacking"));
    return done.error().reason;
  }
  std::string refusal(const std::vector<ZipEntry>& entries, const UnpackBounds& bounds = {}) {
    return refusal(zip_of(entries), bounds);
  }
  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream{folder + "/out/" + name}.rdbuf();
    return text.str();
  }
  std::string folder;
};

TEST_F(UnpackTest, AGoodPackageIsThereWholeAndItsTextsAreFound) {
  ASSERT_EQ(refusal({{"host.json", "{}"},
                     {"a/function.json", "[1]"},
                     {"a/deep/er/file", "text"},
                     {"a/link", "", "deep/er/file"}}),
            "");
  EXPECT_EQ(read("a/deep/er/file"), "text");
  EXPECT_EQ(read("a/link"), "text");
  const auto texts = read_package_texts(folder + "/out");
  ASSERT_TRUE(texts.has_value());
  EXPECT_EQ(texts->host_json, "{}");
  EXPECT_EQ(texts->function_json, (std::map<std::string, std::string>{{"a", "[1]"}}));
}

TEST_F(UnpackTest, NothingIsWrittenOutsideTheDestination) {
  EXPECT_NE(refusal({{"../evil", "x"}}), "");
  EXPECT_NE(refusal({{"a/../../evil", "x"}}), "");
  EXPECT_NE(refusal({{"/evil", "x"}}), "");
  EXPECT_NE(refusal({{"..\\evil", "x"}}), "");
  EXPECT_NE(refusal({{"C:/evil", "x"}}), "");
  EXPECT_NE(refusal({{"link", "", "/etc"}}), "");
  EXPECT_NE(refusal({{"link", "", "../.."}}), "");
  EXPECT_NE(refusal({{"a/one", "", "../b"}, {"b", "", ".."}}), "") << "a link to a link";
  EXPECT_NE(refusal({{"link", "", ".."}, {"link/evil", "x"}}), "") << "through a link";
  EXPECT_FALSE(fs::exists(folder + "/evil"));
}

TEST_F(UnpackTest, NoLinkIsMadeThroughAnother) {
  EXPECT_NE(refusal({{"a", "", "a"}, {"a/b", "", "x"}}), "") << "a link to itself";
  EXPECT_NE(refusal({{"a", "", "../.."}, {"a/d/l", "", "t"}}), "") << "what it leads to would get a folder";
  EXPECT_NE(refusal({{"a/d/l", "", "t"}, {"a", "", "../.."}}), "") << "in either order";
  EXPECT_NE(refusal({{"f", "x"}, {"a", "", "./"}, {"a/l", "", "f"}}), "")
      << "even where it would stay inside";
  EXPECT_FALSE(fs::exists(fs::path{folder}.parent_path() / "d"));
  EXPECT_EQ(refusal({{"f", "x"}, {"a", "", "f"}, {"ab/l", "", "../f"}, {"a.l", "", "f"}}), "")
      << "names that only begin alike";
}

TEST_F(UnpackTest, ALinkMustLeadToSomethingInThePackage) {
  EXPECT_NE(refusal({{"f", "x"}, {"link", "", "nowhere/../../../evil"}}), "")
      << "made later, it would lead out";
  EXPECT_NE(refusal({{"f", "x"}, {"link", "", "../evil"}}), "");
  EXPECT_NE(refusal({{"f", "x"}, {"link", "", "nowhere"}}), "");
  EXPECT_NE(refusal({{"f", "x"}, {"a", "", "b"}, {"b", "", "a"}}), "") << "a circle";
}

TEST_F(UnpackTest, BoundsHold) {
  EXPECT_NE(refusal({{"a", "1"}, {"b", "2"}, {"c", "3"}}, {.entries_max = 2}), "");
  EXPECT_NE(refusal({{"a", std::string(2000, 'a')}}, {.bytes_max = 1000}), "");
  EXPECT_NE(refusal({{"a", std::string(4'000'000, 'a')}}, {.bytes_free_of_ratio = 1000, .ratio_max = 10}), "")
      << "a bomb";
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "d/";
  EXPECT_NE(refusal({{deep + "f", "x"}}), "");
  EXPECT_NE(refusal({{std::string(300, 'n'), "x"}}), "");
  EXPECT_NE(refusal({{"twice", "1"}, {"twice", "2"}}), "");
}

TEST_F(UnpackTest, WhatIsNoZipIsRefused) {
  EXPECT_NE(refusal(std::string{"this is no zip"}), "");
  EXPECT_NE(refusal(std::string{}), "");
  std::string cut = zip_of({{"a", std::string(5000, 'x')}, {"b", "y"}});
  cut.resize(cut.size() / 2);
  EXPECT_NE(refusal(cut), "");
}

}  // namespace
}  // namespace windlass::agent
