#include "protocol/shell/config_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>

namespace windlass {
namespace {

// A TOML file that lives as long as the test.
class ConfigReaderTest : public ::testing::Test {
 protected:
  ConfigSources file(const std::string& text) {
    std::ofstream{path_} << text;
    ::chmod(path_.c_str(), S_IRUSR | S_IWUSR);  // secrets that others can read are refused
    return {.file = path_};
  }
  void TearDown() override { std::remove(path_.c_str()); }
  std::string line(int number) const { return path_ + ":" + std::to_string(number) + ": "; }

  std::string path_ = ::testing::TempDir() + "config_reader_test_" + std::to_string(::getpid()) + ".toml";
};

using Problems = std::vector<std::string>;

TEST_F(ConfigReaderTest, FlagsWinOverTheEnvironmentWhichWinsOverTheFile) {
  ConfigSources sources = file("[session]\na = \"file\"\nb = \"file\"\nc = \"file\"\n");
  sources.environment = {{"WINDLASS_SESSION_B", "environment"}, {"WINDLASS_SESSION_C", "environment"}};
  sources.flags = {{"--c", "session.c", "flag"}};
  ConfigReader reader{sources};
  ConfigTable session = reader.section("session");
  EXPECT_EQ(session.text("a", ""), "file");
  EXPECT_EQ(session.text("b", ""), "environment");
  EXPECT_EQ(session.text("c", ""), "flag");
  EXPECT_EQ(session.text("d", "fallback"), "fallback");
  EXPECT_EQ(reader.finish(), Problems{});
}

TEST_F(ConfigReaderTest, EveryTypeIsReadFromTheFileAndFromText) {
  ConfigSources sources = file(
      "[s]\ninteger = 7\nnumber = 2.5\nboolean = true\nduration = \"250ms\"\nbytes = \"64KiB\"\n"
      "list = [\"a\", \"b\"]\nranges = [80, \"443-445\"]\n[t]\n");
  sources.environment = {{"WINDLASS_T_INTEGER", "7"},        {"WINDLASS_T_NUMBER", "2.5"},
                         {"WINDLASS_T_BOOLEAN", "true"},     {"WINDLASS_T_DURATION", "250ms"},
                         {"WINDLASS_T_BYTES", "65536"},      {"WINDLASS_T_LIST", "a,b"},
                         {"WINDLASS_T_RANGES", "80,443-445"}};
  ConfigReader reader{sources};
  for (const char* name : {"s", "t"}) {
    ConfigTable table = reader.section(name);
    EXPECT_EQ(table.integer("integer", 0), 7U);
    EXPECT_EQ(table.number("number", 0, {0, 10}), 2.5);
    EXPECT_TRUE(table.boolean("boolean", false));
    EXPECT_EQ(table.duration("duration", {}, {Duration{}, seconds{1}}), milliseconds{250});
    EXPECT_EQ(table.bytes("bytes", 0, {0, 1U << 20U}), 65536U);
    EXPECT_EQ(table.list("list"), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(table.ranges("ranges", {1, 1000}), (std::vector<Range<std::uint64_t>>{{80, 80}, {443, 445}}));
  }
  EXPECT_EQ(reader.finish(), Problems{});
}

TEST_F(ConfigReaderTest, AnUnknownSettingIsNamedWithItsLine) {
  ConfigReader reader{file("[session]\ntenant = \"a\"\ntennant = \"b\"\n\n[sesion]\nx = 1\n")};
  reader.section("session").text("tenant", "");
  EXPECT_EQ(reader.finish(),
            (Problems{line(5) + "sesion is not a known setting; remove it or correct its name.",
                      line(3) + "session.tennant is not a known setting; remove it or correct its name."}));
}

TEST_F(ConfigReaderTest, AnUnknownVariableOfAKnownSectionIsNamedAndOthersAreNotOurs) {
  ConfigReader reader{{.environment = {{"WINDLASS_SESSION_TENNANT", "a"}, {"WINDLASS_ADMIN_PORT", "1"}}}};
  reader.section("session").text("tenant", "");
  EXPECT_EQ(reader.finish(),
            Problems{"WINDLASS_SESSION_TENNANT: is not a known setting; remove it or correct its name."});
}

TEST_F(ConfigReaderTest, EveryWrongValueIsOneSentenceWithItsPlace) {
  ConfigSources sources = file("[s]\na = 5\nb = \"x\"\nc = \"5\"\nd = 1\ne = 99\nf = \"fast\"\ng = [1]\n");
  sources.environment = {{"WINDLASS_S_H", "yes"}};
  ConfigReader reader{sources};
  ConfigTable s = reader.section("s");
  s.text("a", "");
  s.integer("b", 0);
  s.duration("c", {}, {Duration{}, seconds{1}});
  s.boolean("d", false);
  s.integer("e", 1, {1, 9});
  constexpr std::array<std::string_view, 2> kModes{"slow", "off"};
  EXPECT_EQ(s.choice("f", "off", kModes), "off");
  s.list("g");
  s.boolean("h", false);
  s.required_text("i", "the address of the scheduler");
  EXPECT_EQ(reader.finish(),
            (Problems{line(2) + "s.a must be text in quotes.", line(3) + "s.b must be a whole number.",
                      line(4) + R"(s.c must be text with a unit, such as "250ms", "30s", "5m" or "1h".)",
                      line(5) + "s.d must be true or false.", line(6) + "s.e must be from 1 to 9.",
                      line(7) + R"(s.f must be one of slow, off, not "fast".)",
                      line(8) + "s.g must be a list of texts in quotes.",
                      "WINDLASS_S_H: s.h must be true or false.",
                      line(1) + "s.i is missing: it is the address of the scheduler; set it in the file or "
                                "WINDLASS_S_I."}));
}

TEST_F(ConfigReaderTest, ABrokenFileIsOneProblemWithItsLine) {
  ConfigReader reader{file("[session]\ntenant = \n")};
  reader.section("session").required_text("tenant", "the tenant");
  const Problems problems = reader.finish();
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_TRUE(problems[0].starts_with(line(2) + "is not TOML: ")) << problems[0];
}

TEST_F(ConfigReaderTest, AMissingFileIsOneProblem) {
  ConfigReader reader{{.file = path_ + ".none"}};
  reader.section("session").required_text("tenant", "the tenant");
  EXPECT_EQ(reader.finish(), Problems{path_ + ".none: cannot be read: No such file or directory."});
}

TEST_F(ConfigReaderTest, NamedTablesAndListsOfTablesAreCheckedInside) {
  ConfigReader reader{
      file("[exec.b]\np = \"1\"\n[exec.a]\np = \"2\"\nq = 1\n[[token]]\nt = \"x\"\n[[token]]\nu = 1\n")};
  std::string seen;
  for (ConfigTable& table : reader.named_tables("exec"))
    seen += table.name() + "=" + table.text("p", "") + " ";
  for (ConfigTable& table : reader.tables("token")) seen += table.text("t", "none") + " ";
  EXPECT_EQ(seen, "exec.a=2 exec.b=1 x none ");
  EXPECT_EQ(reader.finish(),
            (Problems{line(5) + "exec.a.q is not a known setting; remove it or correct its name.",
                      line(9) + "token.u is not a known setting; remove it or correct its name."}));
}

TEST_F(ConfigReaderTest, ARangeBeginsWithItsLowerNumberAndStaysInside) {
  for (const char* const wrong : {"0", "-1", "65536", "\"\"", "\"9-\"", "\"-9\"", "\"9-8\"", "\"1-65536\"",
                                  "\"0-9\"", "\"1-2-3\"", "\"1 - 2\"", "1.5", "[1]"}) {
    ConfigReader reader{file(std::string{"[s]\nports = [80, "} + wrong + "]\n")};
    EXPECT_TRUE(reader.section("s").ranges("ports", {1, 65535}).empty()) << wrong;
    EXPECT_EQ(reader.finish(),
              Problems{line(2) + "s.ports must be a list of whole numbers from 1 to 65535, or of ranges as "
                                 "\"32768-60999\", the lower number first."})
        << wrong;
  }
}

TEST_F(ConfigReaderTest, ASecretInAFileThatEverybodyCanReadIsRefused) {
  ConfigSources sources = file("[auth]\ntoken = \"s3cret\"\n");
  const auto problems = [&] {
    ConfigReader reader{sources};
    EXPECT_FALSE(reader.section("auth").secret("token").empty());
    return reader.finish();
  };
  EXPECT_EQ(problems(), Problems{});
  ::chmod(path_.c_str(), 0644);
  EXPECT_EQ(problems(),
            Problems{line(2) + "auth.token is wrong: " + path_ +
                     ": every user of this machine can read this secret; run chmod o-rwx " + path_ + "."});
  // The file says nothing where the environment does, and does not matter where there is no secret in it.
  sources.environment = {{"WINDLASS_AUTH_TOKEN", "other"}};
  EXPECT_EQ(problems(), Problems{});
}

TEST_F(ConfigReaderTest, ASecretIsTheFirstLineOfItsFile) {
  static_cast<void>(file(" s3cret \nrest\n"));
  EXPECT_EQ(read_secret_file(path_).secret, "s3cret");
  static_cast<void>(file("\n"));
  EXPECT_EQ(read_secret_file(path_).problem, path_ + ": is empty; its first line must be the secret.");
}

}  // namespace
}  // namespace windlass
