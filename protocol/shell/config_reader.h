// Reads a program's settings from three places: flags win over environment variables, which win over a TOML
// file. Knows no setting itself: what a program asks for is what is known, and finish() reports everything
// else, and every value that does not parse, each with its place, in one sentence.
//
//   ConfigReader reader({.file = "agent.toml", .environment = windlass_environment(), .flags = flags});
//   ConfigTable session = reader.section("session");
//   config.tenant = session.required_text("tenant", "the tenant this worker belongs to");
//   config.heartbeat = session.duration("heartbeat", seconds{30}, {seconds{1}, seconds{600}});
//   if (auto problems = reader.finish(); !problems.empty()) ...print each, exit 2
//
// [session] tenant = "a" is WINDLASS_SESSION_TENANT in the environment. Section names have no underscore.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/base/limits.h"
#include "protocol/base/time.h"

namespace windlass {

struct FlagValue {
  std::string flag;  // as the user wrote it, "--tenant"
  std::string key;   // "session.tenant"
  std::string value;
};

struct ConfigSources {
  std::optional<std::string> file = std::nullopt;
  std::vector<std::pair<std::string, std::string>> environment = {};  // names with their WINDLASS_
  std::vector<FlagValue> flags = {};
};

// What this process was started with, reduced to names that begin with WINDLASS_.
std::vector<std::pair<std::string, std::string>> windlass_environment();

template <class T>
struct Range {
  T least;
  T most;
  friend bool operator==(const Range&, const Range&) = default;
};

namespace config_detail {
struct Inside;
struct Value;
}  // namespace config_detail

// One table of settings. A getter gives its fallback when nothing is set or what is set is wrong; a wrong
// value becomes a problem. Belongs to its reader and must not outlive it.
class ConfigTable final {
 public:
  std::optional<std::string> optional_text(std::string_view key);
  std::string text(std::string_view key, std::string_view fallback);
  std::string required_text(std::string_view key, std::string_view what_it_is);  // not empty
  // Empty if it is not set. In a file that every user of the machine can read it is a problem.
  std::string secret(std::string_view key);
  std::string choice(std::string_view key, std::string_view fallback,
                     std::span<const std::string_view> choices);
  std::optional<std::uint64_t> optional_integer(std::string_view key,
                                                Range<std::uint64_t> range = {0, limits::kIntegerMax});
  std::uint64_t integer(std::string_view key, std::uint64_t fallback,
                        Range<std::uint64_t> range = {0, limits::kIntegerMax});
  std::optional<double> optional_number(std::string_view key, Range<double> range);
  double number(std::string_view key, double fallback, Range<double> range);
  bool boolean(std::string_view key, bool fallback);
  // Text with a unit: "250ms", "30s", "5m", "1h".
  Duration duration(std::string_view key, Duration fallback, Range<Duration> range);
  // A number of bytes, or text with a unit: "64KiB", "8MiB", "1GiB".
  std::uint64_t bytes(std::string_view key, std::uint64_t fallback, Range<std::uint64_t> range);
  // A TOML array of text; commas separate the items of a flag or an environment variable.
  std::vector<std::string> list(std::string_view key);
  // The same, of whole numbers and of texts like "32768-60999"; a single number is both ends of its range.
  std::vector<Range<std::uint64_t>> ranges(std::string_view key, Range<std::uint64_t> range);

  // Adds a problem with one of this table's settings, or with the table (empty key), at its place.
  void problem(std::string_view key, std::string_view sentence);
  bool has(std::string_view key) const;              // set anywhere
  const std::string& name() const { return name_; }  // "session"; "exec.backup" of a named table

 private:
  friend class ConfigReader;
  ConfigTable(config_detail::Inside& inside, std::string name, const void* node, bool takes_environment);

  std::optional<config_detail::Value> find(std::string_view key);
  void wrong(const config_detail::Value& value, std::string_view key, std::string_view sentence);

  config_detail::Inside* inside_;
  std::string name_;
  const void* node_;  // toml::table, or none
  bool takes_environment_;
};

class ConfigReader final {
 public:
  explicit ConfigReader(ConfigSources sources);
  ~ConfigReader();
  ConfigReader(const ConfigReader&) = delete;
  ConfigReader& operator=(const ConfigReader&) = delete;

  ConfigTable section(std::string_view name);                    // [name]
  std::vector<ConfigTable> named_tables(std::string_view name);  // [name.<anything>], in the file only
  std::vector<ConfigTable> tables(std::string_view name);        // [[name]], in the file only

  // Everything that is wrong, one sentence each: call it when all settings were asked for.
  std::vector<std::string> finish();

 private:
  std::unique_ptr<config_detail::Inside> inside_;
};

// The first line of a file that holds a secret, without white space around it; an error sentence otherwise,
// also for a file that every user of the machine can read.
struct SecretFile {
  std::string secret;
  std::string problem;  // empty: none
};
SecretFile read_secret_file(const std::string& path);

}  // namespace windlass
