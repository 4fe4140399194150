#include "tests/bench/neighbour_load.h"

#include <algorithm>
#include <chrono>

#include "protocol/base/check.h"

namespace windlass::bench {
namespace {

// Longer than any server needs, even one whose disk is busy with somebody else's work.
constexpr Duration kPatience = seconds{60};

}  // namespace

NeighbourLoad::NeighbourLoad(const NeighbourServer& server, const TlsContext& tls, Greeting greeting)
    : server_(server), tls_(tls), greeting_(greeting) {}

void NeighbourLoad::connect(std::unique_ptr<LoadProtocol> protocol, Part part) {
  members_.push_back(
      {std::make_unique<LoadConnection>(loop_, tls_, server_.place().port, std::move(protocol), greeting_),
       part});
}

void NeighbourLoad::open() {
  wait_for([](const LoadConnection& each) { return each.is_ready(); },
           "a neighbour did not open all connections in time");
}

LoadSample NeighbourLoad::run(std::size_t in_flight, Duration window) {
  const double nanoseconds_before = server_.nanoseconds();
  for (const Member& each : members_) {
    if (each.part == Part::Answering) continue;
    each.connection->on_answers = [](LoadConnection& connection, std::size_t answers) {
      connection.send(answers);
    };
    each.connection->send(in_flight);
  }
  const auto count = [this] {
    std::uint64_t sum = 0;
    for (const Member& each : members_) sum += each.connection->take_count();
    return sum;
  };
  const Instant start = loop_.now().steady;
  run_until(loop_, window, [] { return false; });
  const double spent = std::chrono::duration<double>(loop_.now().steady - start).count();
  for (const Member& each : members_) each.connection->on_answers = nullptr;
  const std::uint64_t in_window = count();
  wait_for([](const LoadConnection& each) { return each.in_flight() == 0; },
           "a neighbour did not answer everything in time");
  const std::uint64_t all = in_window + count();
  operations_ += all;
  return {static_cast<double>(in_window) / spent,
          (server_.nanoseconds() - nanoseconds_before) / static_cast<double>(all)};
}

void NeighbourLoad::wait_for(bool (*is_so)(const LoadConnection&), const char* otherwise) {
  bool holds = false;
  run_until(loop_, kPatience, [&] {
    holds = std::all_of(members_.begin(), members_.end(),
                        [is_so](const Member& each) { return is_so(*each.connection); });
    return holds;
  });
  if (!holds) stop_bench(otherwise);
}

std::unique_ptr<TlsContext> neighbour_tls(const std::string& authority_file) {
  auto made = TlsContext::client({authority_file, std::nullopt, TlsVersion::Tls13});
  CHECK(made.has_value());
  return std::move(*made);
}

}  // namespace windlass::bench
