// How busy this machine is right now, and how full its memory, or what the agent's control group may use of
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace windlass::agent {

struct LoadSample {
  std::optional<double> cpu_pct;  // since the sample before; none for the first
  std::optional<double> mem_pct;
  std::optional<double> disk_pct;
};

class LoadSampler final {
 public:
  // `disk_path` is in the file system that is measured. `root` is "/", but for tests.
  explicit LoadSampler(std::string disk_path, std::string root = "/");
  LoadSample sample();

 private:
  std::optional<double> cpu();
  std::optional<double> memory() const;

  std::string disk_path_;
  std::string root_;
  std::uint64_t busy_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace windlass::agent
