#include "worker-agent/adapters/load_sampler.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>

#include "protocol/adapters/group_memory.h"

namespace windlass::agent {
namespace {

double percent(double part, double whole) {
  return whole <= 0 ? 0 : std::clamp(100 * part / whole, 0.0, 100.0);
}

}  // namespace

LoadSampler::LoadSampler(std::string disk_path, std::string root)
    : disk_path_(std::move(disk_path)), root_(std::move(root)) {
  static_cast<void>(cpu());
}

LoadSample LoadSampler::sample() {
  LoadSample sample{.cpu_pct = cpu(), .mem_pct = memory(), .disk_pct = std::nullopt};
  struct statvfs disk {};
  if (::statvfs(disk_path_.c_str(), &disk) == 0) {
    const auto used = static_cast<double>(disk.f_blocks - disk.f_bfree);
    // What only the superuser may use is not ours to fill.
    sample.disk_pct = percent(used, used + static_cast<double>(disk.f_bavail));
  }
  return sample;
}

std::optional<double> LoadSampler::cpu() {
  std::ifstream file{root_ + "proc/stat"};
  std::string name;
  std::array<std::uint64_t, 8> ticks{};  // user nice system idle iowait irq softirq steal
  if (!(file >> name) || name != "cpu") return std::nullopt;
  for (std::uint64_t& each : ticks) {
    if (!(file >> each)) return std::nullopt;
  }
  std::uint64_t total = 0;
  for (const std::uint64_t each : ticks) total += each;
  const std::uint64_t busy = total - ticks[3] - ticks[4];
  const std::uint64_t total_before = std::exchange(total_, total);
  const std::uint64_t busy_before = std::exchange(busy_, busy);
  if (total <= total_before || busy < busy_before) return std::nullopt;
  return percent(static_cast<double>(busy - busy_before), static_cast<double>(total - total_before));
}

std::optional<double> LoadSampler::memory() const {
  // Where there is a limit it counts, and what the machine has left does not.
  if (const auto group = own_group_memory(root_); group && group->used) {
    return percent(static_cast<double>(*group->used), static_cast<double>(group->limit));
  }
  const auto total = number_after(root_ + "proc/meminfo", "MemTotal:");
  const auto available = number_after(root_ + "proc/meminfo", "MemAvailable:");
  if (!total || !available) return std::nullopt;
  return percent(static_cast<double>(*total - std::min(*available, *total)), static_cast<double>(*total));
}

}  // namespace windlass::agent
