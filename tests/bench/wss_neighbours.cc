#include "tests/bench/wss_neighbours.h"

#include <cstdio>
#include <filesystem>
#include <memory>

namespace windlass::bench {
namespace {

NeighbourOptions neighbour_options(const Run& run, const testing::TestAuthority& authority,
                                   const testing::IssuedFiles& files) {
  NeighbourOptions options{files.certificate, files.key, authority.certificate_file(), {}};
  // The system's temporary folder may be memory, and a disk is what the durable ones are measured on.
  options.folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  if (run.is_smoke()) options.connections = 4;
  return options;
}

std::vector<NeighbourRow> measure_neighbours(const Run& run, std::size_t connections,
                                             const std::vector<Neighbour*>& neighbours) {
  const Duration window = run.is_smoke() ? milliseconds{10} : milliseconds{400};
  const std::size_t rounds = run.is_smoke() ? 1 : kRounds;
  std::vector<NeighbourRow> rows;
  for (Neighbour* const each : neighbours) {
    rows.push_back({each->name(), {}, {}});
    static_cast<void>(each->many(window / 4));
  }
  const auto add = [rounds](NeighbourShape& shape, std::size_t round, const LoadSample& sample) {
    // A single round stands for all.
    for (std::size_t i = round; i < (rounds == 1 ? kRounds : round + 1); ++i) {
      shape.rate[i] = sample.rate;
      shape.nanoseconds[i] = sample.server_nanoseconds;
    }
  };
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < rows.size(); ++i) add(rows[i].many, round, neighbours[i]->many(window));
    for (std::size_t i = 0; i < rows.size(); ++i) add(rows[i].one, round, neighbours[i]->one(window));
  }
  for (const NeighbourRow& row : rows) {
    std::printf("neighbour %s %zux32 %.0f/s %.0f ns %zux1 %.0f/s %.0f ns\n", row.name.c_str(), connections,
                median(row.many.rate), median(row.many.nanoseconds), connections, median(row.one.rate),
                median(row.one.nanoseconds));
  }
  return rows;
}

std::vector<NeighbourRow> measure_beside(const Run& run, const NeighbourOptions& options, Neighbour* ours,
                                         const std::vector<std::unique_ptr<Neighbour>>& others) {
  std::vector<Neighbour*> all;
  all.reserve(others.size() + 1);
  if (ours != nullptr) all.push_back(ours);
  for (const auto& each : others) all.push_back(each.get());
  return measure_neighbours(run, options.connections, all);
}

}  // namespace

double NeighbourShape::speed_over(const NeighbourShape& other) const {
  Samples ratios{};
  for (std::size_t i = 0; i < kRounds; ++i) ratios[i] = other.nanoseconds[i] / nanoseconds[i];
  return median(ratios);
}

std::vector<NeighbourRow> neighbours_table(const Run& run, const testing::TestAuthority& authority,
                                           const testing::IssuedFiles& files, Neighbour* ours) {
  const NeighbourOptions options = neighbour_options(run, authority, files);
  std::vector<std::unique_ptr<Neighbour>> neighbours;
  neighbours.push_back(nats_request_reply(options));
  neighbours.push_back(jetstream(options, Storage::Memory));
  neighbours.push_back(redis_streams(options, Durability::None));
  return measure_beside(run, options, ours, neighbours);
}

std::vector<NeighbourRow> durable_neighbours_table(const Run& run, const testing::TestAuthority& authority,
                                                   const testing::IssuedFiles& files, Neighbour* ours) {
  const NeighbourOptions options = neighbour_options(run, authority, files);
  std::vector<std::unique_ptr<Neighbour>> neighbours;
  neighbours.push_back(jetstream(options, Storage::File));
  neighbours.push_back(redis_streams(options, Durability::Always));
  return measure_beside(run, options, ours, neighbours);
}

}  // namespace windlass::bench
