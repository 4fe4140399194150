// What choosing a worker costs, and how that depends on how many there are: instructions per selection, least
// loaded first, while work comes and goes.
//
//   bench_router                          times and instructions (callgrind)
//   bench_router --smoke                  shows only that it works
//   bench_router --select COUNT WORKERS   makes COUNT selections and ends: what runs under callgrind
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "protocol/base/check.h"
#include "protocol/base/random.h"
#include "runtime/core/invocation_router.h"
#include "runtime/core/worker.h"
#include "tests/bench/bar.h"

namespace windlass::runtime {
namespace {

constexpr std::uint32_t kSlots = 10;
constexpr std::size_t kTakenPerWorker = 7;  // a house that is busy, not full

// A router whose workers hold work all the time. One step ends an invocation somewhere and places another, so
// what it costs is a selection with all the bookkeeping that belongs to it.
class BusyHouse {
 public:
  explicit BusyHouse(std::size_t workers) : router_(RoutingStrategy::LeastLoaded, 1) {
    for (std::size_t i = 0; i < workers; ++i) {
      workers_.push_back(std::make_unique<Worker>(WorkerId{"worker-" + std::to_string(i)}));
      workers_.back()->route.slots = kSlots;
      router_.add(workers_.back()->route, "v1");
    }
    for (std::size_t i = 0; i < workers * kTakenPerWorker; ++i) taken_.push_back(place());
  }
  BusyHouse(const BusyHouse&) = delete;
  BusyHouse& operator=(const BusyHouse&) = delete;
  ~BusyHouse() {
    for (const auto& worker : workers_) router_.remove(worker->route);
  }

  void step() {
    RouteNode*& place_of_one = taken_[random_.below(taken_.size())];
    InvocationRouter::release(*place_of_one);
    place_of_one = place();
  }

  std::uint32_t free_slots() const { return router_.free_slots(); }

 private:
  RouteNode* place() {
    RouteNode* const node = router_.select("transform");
    CHECK(node != nullptr);
    InvocationRouter::take(*node);
    return node;
  }

  InvocationRouter router_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<RouteNode*> taken_;
  Random random_{7};
};

bool make_selections(std::uint64_t count, std::size_t workers) {
  BusyHouse house{workers};
  for (std::uint64_t i = 0; i < count; ++i) house.step();
  return house.free_slots() == workers * (kSlots - kTakenPerWorker);
}

// Instructions of one run of this program under callgrind, whatever else the machine does meanwhile.
std::optional<double> instructions_of(const char* self, std::uint64_t count, std::size_t workers) {
  const std::string command = std::string{"valgrind --tool=callgrind --callgrind-out-file=/dev/null "} +
                              self + " --select " + std::to_string(count) + " " + std::to_string(workers) +
                              " 2>&1";
  FILE* const output = popen(command.c_str(), "r");
  if (output == nullptr) return std::nullopt;
  std::optional<double> collected;
  std::array<char, 512> line{};
  while (std::fgets(line.data(), static_cast<int>(line.size()), output) != nullptr) {
    const char* const at = std::strstr(line.data(), "Collected : ");
    if (at != nullptr) collected = std::strtod(at + std::strlen("Collected : "), nullptr);
  }
  return pclose(output) == 0 ? collected : std::nullopt;
}

// The same run with twice the selections has the same preparations, so the difference is selections alone.
std::optional<double> instructions_per_selection(const char* self, std::size_t workers) {
  constexpr std::uint64_t kCount = 20'000;
  const auto once = instructions_of(self, kCount, workers);
  const auto twice = instructions_of(self, 2 * kCount, workers);
  if (!once || !twice) return std::nullopt;
  const double each = (*twice - *once) / static_cast<double>(kCount);
  std::printf("instructions per selection, %zu workers: %.0f\n", workers, each);
  return each;
}

void measure_instructions(bench::Run& run, const char* self) {
  const auto few = instructions_per_selection(self, 10);
  const auto some = instructions_per_selection(self, 100);
  const auto many = instructions_per_selection(self, 1000);
  const bool is_measured = few && some && many;
  if (!is_measured) std::printf("valgrind is missing or failed; ./dev setup installs it\n");
  run.bar("router_instructions_100", is_measured ? *some : 1e9, "<=", 300);
  run.bar("router_10_to_1000", is_measured ? *many / *few : 1e9, "<=", 1.3);
}

}  // namespace
}  // namespace windlass::runtime

int main(int argc, char** argv) {
  using namespace windlass;
  using namespace windlass::runtime;
  if (argc == 4 && std::strcmp(argv[1], "--select") == 0) {
    return make_selections(std::strtoull(argv[2], nullptr, 10), std::strtoul(argv[3], nullptr, 10)) ? 0 : 1;
  }
  bench::Run run{argc, argv};
  BusyHouse few{10};
  BusyHouse many{1000};
  run.measure(bench::Case{"router_selection_10", [&] { few.step(); }},
              bench::Case{"router_selection_1000", [&] { many.step(); }});
  if (!run.is_smoke()) measure_instructions(run, argv[0]);
  return run.exit_code();
}
