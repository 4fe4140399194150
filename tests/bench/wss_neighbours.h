// The tables of the neighbours: what they reach in this run on this machine, for bars against our session.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/bar.h"
#include "tests/bench/neighbours.h"
#include "tests/support/certificates.h"

namespace windlass::bench {

struct NeighbourShape {
  Samples rate{};         // operations per second
  Samples nanoseconds{};  // of the server for each

  // How many times less processor time than `other`'s server an operation costs: by rounds, because two cases
  // measured next to one another share the machine's mood.
  double speed_over(const NeighbourShape& other) const;
};

struct NeighbourRow {
  std::string name;
  NeighbourShape many;  // 64 connections x 32 in flight
  NeighbourShape one;   // 64 x 1
};

// Loads the neighbours in turn, five rounds over, and prints one line for each:
//   neighbour <name> 64x32 <rate>/s <ns> ns 64x1 <rate>/s <ns> ns
// Their servers and data live beside this program while it runs. `ours`, if given, is measured in the same
// rounds and is the first row.
std::vector<NeighbourRow> neighbours_table(const Run& run, const testing::TestAuthority& authority,
                                           const testing::IssuedFiles& files, Neighbour* ours = nullptr);

// The same for those that keep what they acknowledge on the disk.
std::vector<NeighbourRow> durable_neighbours_table(const Run& run, const testing::TestAuthority& authority,
                                                   const testing::IssuedFiles& files,
                                                   Neighbour* ours = nullptr);

}  // namespace windlass::bench
