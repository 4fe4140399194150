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

#include "protocol/adapters/websocket_client.h"
#include "protocol/base/check.h"
#include "protocol/driver/worker_driver.h"
#include "tests/bench/child_process.h"
#include "tests/bench/session_echo.h"
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
class Fleet final : private TurnEnd {
 public:
  Fleet(std::uint16_t port, const std::string& authority_file, std::size_t count);
  ~Fleet() override;

  // Opens all sessions, cuts all links, and waits until every frame was answered once.
  void run();
  void print() const;

  EventLoop loop;
  Decoder decoder;
  SessionConfig config;
  std::vector<Instant> dials;
  std::vector<StormWorker*> marked;  // have something to say in this turn

 private:
  void on_turn_end(TurnPhase phase) override;
  bool all_of(std::size_t count, bool (StormWorker::*is_so)() const) const;

  std::uint16_t port_;
  std::unique_ptr<TlsContext> tls_;
  std::vector<std::unique_ptr<StormWorker>> workers_;
  double seconds_ = 0;
};

WorkerOptions options_of(std::size_t number) {
  WorkerOptions options;
  options.tenant = "acme";
  options.instance_id = "w" + std::to_string(number);
  options.auth_token = "any";
  options.profile.worker_name = "storm";
  options.profile.version = "1";
  options.profile.hostname = "h";
  options.profile.runtimes = {"none"};
  return options;
}

// One worker, as an agent runs it, with an owner that sends numbered frames and expects each back once and in
// order.
class StormWorker final : private ConnectionEvents, private Dialer {
 public:
  StormWorker(Fleet& fleet, const ClientOptions& options, std::size_t number)
      : fleet_(fleet),
        endpoint_(options_of(number), fleet.config, number),
        alarm_(fleet.loop,
               [this] {
                 driver_.on_alarm();
                 mark();
               }),
        client_(WebSocketClient::create(fleet.loop, options, *this).value()),
        driver_(endpoint_, fleet.decoder, fleet.loop.clock(), alarm_, *this) {}

  void start() {
    endpoint_.start(fleet_.loop.now());
    mark();
  }
  void send_until(std::uint64_t count) {
    for (; sent_ < count; ++sent_) {
      const std::string id = "m" + std::to_string(sent_);
      CHECK(endpoint_.send(Message{{.type = "biz.echo", .id = id, .payload = "{}"}}, fleet_.loop.now()));
    }
    mark();
  }
  void flush() {
    marked_ = false;
    do {
      driver_.flush(std::exchange(idle_, false));
    } while (take_events());
  }

  bool is_connected() const { return endpoint_.session() != nullptr && endpoint_.session()->is_connected(); }
  bool has_half() const { return echoed_ == kFrames / 2; }
  bool has_all() const { return is_connected() && echoed_ == kFrames && acknowledged_ == kFrames; }
  std::uint64_t resumes() const { return resumes_; }

 private:
  void dial(ConnectionId id) override {
    fleet_.dials.push_back(fleet_.loop.now().steady);
    client_->dial(id);
  }
  void on_opened(ConnectionId id, WebSocketConnection& connection) override {
    driver_.on_opened(id, connection);
    mark();
  }
  void on_message(ConnectionId id, BytesView message, MessageKind kind) override {
    driver_.on_message(id, message, kind);
    mark();
  }
  void on_idle(ConnectionId /*id*/) override {
    idle_ = true;
    mark();
  }
  void on_writable(ConnectionId id) override {
    driver_.on_writable(id);
    mark();
  }
  void on_closed(ConnectionId id, const CloseFacts& facts) override {
    driver_.on_closed(id, facts.code, facts.reason);
    mark();
  }
  void mark() {
    if (!std::exchange(marked_, true)) fleet_.marked.push_back(this);
    fleet_.loop.turn_again();
  }
  bool take_events() {
    bool any = false;
    while (const auto event = driver_.poll_event()) {
      any = true;
      if (const auto* delivered = std::get_if<Delivered>(&event->event)) {
        CHECK(delivered->message.corr() == "m" + std::to_string(echoed_));  // once, and in order
        ++echoed_;
        endpoint_.own(event->session, delivered->seq + 1, fleet_.loop.now());
      }
      if (const auto* acknowledged = std::get_if<Acknowledged>(&event->event)) {
        acknowledged_ = acknowledged->next;
      }
      if (const auto* established = std::get_if<Established>(&event->event)) resumes_ += established->resumed;
      CHECK(!std::holds_alternative<Ended>(event->event));
    }
    return any;
  }

  Fleet& fleet_;
  WorkerEndpoint endpoint_;
  LoopAlarm alarm_;
  std::unique_ptr<WebSocketClient> client_;
  WorkerDriver driver_;
  std::uint64_t sent_ = 0;
  std::uint64_t echoed_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t resumes_ = 0;
  bool marked_ = false;
  bool idle_ = false;
};

Fleet::Fleet(std::uint16_t port, const std::string& authority_file, std::size_t count)
    : port_(port), tls_(TlsContext::client({authority_file}).value()) {
  ClientOptions options;
  options.address = {.host = "127.0.0.1", .port = port, .target = "/v1"};
  options.tls = tls_.get();
  for (std::size_t i = 0; i < count; ++i) {
    workers_.push_back(std::make_unique<StormWorker>(*this, options, i));
  }
  loop.add_turn_end(TurnPhase::Decide, *this);
}

Fleet::~Fleet() {
  loop.remove_turn_end(TurnPhase::Decide, *this);
}

void Fleet::on_turn_end(TurnPhase /*phase*/) {
  for (StormWorker* const each : std::exchange(marked, {})) each->flush();
}

bool Fleet::all_of(std::size_t count, bool (StormWorker::*is_so)() const) const {
  return std::all_of(workers_.begin(), workers_.begin() + static_cast<std::ptrdiff_t>(count),
                     [is_so](const auto& each) { return (*each.*is_so)(); });
}

void Fleet::run() {
  constexpr std::size_t kAtOnce = 32;
  for (std::size_t opened = 0; opened < workers_.size();) {
    const std::size_t end = std::min(workers_.size(), opened + kAtOnce);
    for (; opened < end; ++opened) workers_[opened]->start();
    run_until(loop, std::nullopt, [&] { return all_of(opened, &StormWorker::is_connected); });
  }
  for (const auto& each : workers_) each->send_until(kFrames / 2);
  run_until(loop, std::nullopt, [this] { return all_of(workers_.size(), &StormWorker::has_half); });
  dials.clear();
  for (const auto& each : workers_) each->send_until(kFrames);  // leaves at the end of the turn that is cut
  CHECK(cut_all(port_) == workers_.size());
  const Instant start = loop.now().steady;
  run_until(loop, std::nullopt, [this] { return all_of(workers_.size(), &StormWorker::has_all); });
  seconds_ = std::chrono::duration<double>(loop.now().steady - start).count();
  for (Instant& each : dials) each -= start.time_since_epoch();
}

// In windows of a quarter of a second.
void Fleet::print() const {
  std::vector<double> windows(static_cast<std::size_t>(seconds_ * 4) + 1);
  for (const Instant each : dials)
    ++windows.at(static_cast<std::size_t>(each.time_since_epoch() / milliseconds{250}));
  const double mean = static_cast<double>(dials.size()) / (seconds_ * 4);
  std::uint64_t resumes = 0;
  for (const auto& each : workers_) resumes += each->resumes();
  std::fprintf(stderr, "%.2f %zu %.2f %llu\n", seconds_, dials.size(),
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
  Fleet fleet{static_cast<std::uint16_t>(std::atoi(argv[2])), argv[3],
              static_cast<std::size_t>(std::atoi(argv[4]))};
  fleet.run();
  fleet.print();
  return true;
}

}  // namespace windlass::bench
