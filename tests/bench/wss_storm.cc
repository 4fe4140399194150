// A reconnect storm: five thousand workers lose their connections at once, with frames under way. Both sides
// are production code; the workers live in a process of their own and cut all of their sockets without a
// word.
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "protocol/base/check.h"
#include "tests/bench/child_process.h"
#include "tests/bench/session_echo.h"
#include "tests/bench/worker_fleet.h"
#include "tests/bench/wss_sections.h"

namespace windlass::bench {
namespace {

constexpr const char* kStormWorkers = "--storm-workers";
constexpr std::uint64_t kFrames = 6;  // of each worker: half are under way when the links are cut

// Every connection of this process to the port ends at once and without a word.
std::size_t cut_all(std::uint16_t port) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    const int fd = std::atoi(entry.path().filename().c_str());
    SocketAddress peer;
    peer.size = sizeof peer.storage;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer.storage), &peer.size) != 0) continue;
    if (peer.port() == port && ::shutdown(fd, SHUT_RDWR) == 0) ++count;
  }
  return count;
}

class StormWorker;

// Workers on one loop, and the moments at which they dialled since the cut.
class StormFleet final {
 public:
  StormFleet(std::uint16_t port, const std::string& authority_file, std::size_t count);

  // Opens all sessions, cuts all links, and waits until every frame was answered once.
  void run();
  void print() const;

 private:
  bool all_of(bool (StormWorker::*is_so)() const) const;

  WorkerFleet fleet_;
  std::vector<std::unique_ptr<StormWorker>> workers_;
  double seconds_ = 0;
};

// One worker, as an agent runs it, with an owner that sends numbered frames and expects each back once and in
// order.
class StormWorker final : public FleetWorker {
 public:
  using FleetWorker::FleetWorker;

  void send_until(std::uint64_t count) {
    for (; sent_ < count; ++sent_) {
      const std::string id = "m" + std::to_string(sent_);
      CHECK(endpoint().send(Message{{.type = "biz.echo", .id = id, .payload = "{}"}}, now()));
    }
    mark();
  }

  bool has_half() const { return echoed_ == kFrames / 2; }
  bool has_all() const { return is_connected() && echoed_ == kFrames && acknowledged_ == kFrames; }
  std::uint64_t resumes() const { return resumes_; }

 private:
  void on_event(OwnerEvent& event) override {
    if (const auto* delivered = std::get_if<Delivered>(&event.event)) {
      CHECK(delivered->message.corr() == "m" + std::to_string(echoed_));  // once, and in order
      ++echoed_;
      endpoint().own(event.session, delivered->seq + 1, now());
    }
    if (const auto* acknowledged = std::get_if<Acknowledged>(&event.event)) {
      acknowledged_ = acknowledged->next;
    }
    if (const auto* established = std::get_if<Established>(&event.event)) resumes_ += established->resumed;
    CHECK(!std::holds_alternative<Ended>(event.event));
  }

  std::uint64_t sent_ = 0;
  std::uint64_t echoed_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t resumes_ = 0;
};

StormFleet::StormFleet(std::uint16_t port, const std::string& authority_file, std::size_t count)
    : fleet_({.port = port, .authority_file = authority_file}) {
  for (std::size_t i = 0; i < count; ++i) workers_.push_back(std::make_unique<StormWorker>(fleet_, i));
}

bool StormFleet::all_of(bool (StormWorker::*is_so)() const) const {
  return std::ranges::all_of(workers_, [is_so](const auto& each) { return (*each.*is_so)(); });
}

void StormFleet::run() {
  std::vector<FleetWorker*> all;
  for (const auto& each : workers_) all.push_back(each.get());
  fleet_.start(all, [](const FleetWorker& each) { return each.is_connected(); });
  for (const auto& each : workers_) each->send_until(kFrames / 2);
  run_until(fleet_.loop, std::nullopt, [this] { return all_of(&StormWorker::has_half); });
  fleet_.dials.clear();
  for (const auto& each : workers_) each->send_until(kFrames);  // leaves at the end of the turn that is cut
  CHECK(cut_all(fleet_.options.port) == workers_.size());
  const Instant start = fleet_.loop.now().steady;
  run_until(fleet_.loop, std::nullopt, [this] { return all_of(&StormWorker::has_all); });
  seconds_ = std::chrono::duration<double>(fleet_.loop.now().steady - start).count();
  for (Instant& each : fleet_.dials) each -= start.time_since_epoch();
}

// In windows of a quarter of a second.
void StormFleet::print() const {
  std::vector<double> windows(static_cast<std::size_t>(seconds_ * 4) + 1);
  for (const Instant each : fleet_.dials)
    ++windows.at(static_cast<std::size_t>(each.time_since_epoch() / milliseconds{250}));
  const double mean = static_cast<double>(fleet_.dials.size()) / (seconds_ * 4);
  std::uint64_t resumes = 0;
  for (const auto& each : workers_) resumes += each->resumes();
  std::fprintf(stderr, "%.2f %zu %.2f %llu\n", seconds_, fleet_.dials.size(),
               *std::max_element(windows.begin(), windows.end()) / mean,
               static_cast<unsigned long long>(resumes));
}

}  // namespace

void storm_bars(Run& run, Identity& identity) {
  const std::size_t count = run.is_smoke() ? 20 : 5000;
  SessionEcho server{*identity.server_tls};
  std::thread thread{[&server] { server.run(); }};
  double seconds_taken = 0;
  std::size_t dials = 0;
  double peak = 0;
  unsigned long long resumes = 0;
  {
    ChildProcess workers{{"/proc/self/exe", kStormWorkers, std::to_string(server.port()),
                          identity.authority.certificate_file(), std::to_string(count)}};
    CHECK(std::sscanf(workers.read_line().c_str(), "%lf %zu %lf %llu", &seconds_taken, &dials, &peak,
                      &resumes) == 4);
  }
  server.stop();
  thread.join();
  // No session was opened a second time: each worker came back to its own, and its frames with it.
  CHECK(server.counters().sessions_opened == count && resumes >= count);
  std::printf("storm of %zu: all READY and every frame answered once after %.1f s, %zu dials\n", count,
              seconds_taken, dials);
  run.bar("wss_storm_seconds_vs_retry_cap",
          seconds_taken / std::chrono::duration<double>(limits::kBackoffCap).count(), "<=", 1);
  run.bar("wss_storm_dials_peak_vs_mean", peak, "<=", 4);
}

bool plays_storm_workers(int argc, char** argv) {
  if (argc != 5 || std::string_view{argv[1]} != kStormWorkers) return false;
  StormFleet fleet{static_cast<std::uint16_t>(std::atoi(argv[2])), argv[3],
                   static_cast<std::size_t>(std::atoi(argv[4]))};
  fleet.run();
  fleet.print();
  return true;
}

}  // namespace windlass::bench
