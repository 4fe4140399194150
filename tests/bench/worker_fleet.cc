#include "tests/bench/worker_fleet.h"

#include <algorithm>
#include <utility>

#include "tests/bench/load_connection.h"

namespace windlass::bench {
namespace {

WorkerOptions worker_options(const WorkerFleet& fleet, std::size_t number) {
  WorkerOptions options;
  options.tenant = "acme";
  options.instance_id = "w" + std::to_string(number);
  options.auth_token = fleet.options.token;
  options.profile.worker_name = "bench";
  options.profile.version = "1";
  options.profile.hostname = "h";
  options.profile.runtimes = {"none"};
  return options;
}

ClientOptions client_options(const WorkerFleet& fleet) {
  ClientOptions options;
  options.address = {.host = "127.0.0.1", .port = fleet.options.port, .target = fleet.options.path};
  options.tls = fleet.tls.get();
  return options;
}

}  // namespace

WorkerFleet::WorkerFleet(FleetOptions fleet_options)
    : options(std::move(fleet_options)), tls(TlsContext::client({options.authority_file}).value()) {
  loop.add_turn_end(TurnPhase::Decide, *this);
}

WorkerFleet::~WorkerFleet() {
  loop.remove_turn_end(TurnPhase::Decide, *this);
}

void WorkerFleet::on_turn_end(TurnPhase /*phase*/) {
  for (FleetWorker* const each : std::exchange(marked, {})) each->flush();
}

void WorkerFleet::start(const std::vector<FleetWorker*>& workers,
                        const std::function<bool(const FleetWorker&)>& is_ready) {
  constexpr std::size_t kAtOnce = 32;
  for (std::size_t begun = 0; begun < workers.size();) {
    const std::size_t end = std::min(workers.size(), begun + kAtOnce);
    for (; begun < end; ++begun) workers[begun]->start();
    run_until(loop, std::nullopt, [&] {
      return std::all_of(workers.begin(), workers.begin() + static_cast<std::ptrdiff_t>(begun),
                         [&](const FleetWorker* each) { return is_ready(*each); });
    });
  }
}

FleetWorker::FleetWorker(WorkerFleet& fleet, std::size_t number)
    : fleet_(fleet),
      endpoint_(worker_options(fleet, number), fleet.config, number),
      alarm_(fleet.loop,
             [this] {
               driver_.on_alarm();
               mark();
             }),
      client_(WebSocketClient::create(fleet.loop, client_options(fleet), *this).value()),
      driver_(endpoint_, fleet.decoder, fleet.loop.clock(), alarm_, *this) {}

void FleetWorker::start() {
  endpoint_.start(now());
  mark();
}

void FleetWorker::flush() {
  marked_ = false;
  do {
    before_flush();
    driver_.flush(std::exchange(idle_, false));
  } while (take_events());
}

void FleetWorker::mark() {
  if (!std::exchange(marked_, true)) fleet_.marked.push_back(this);
  fleet_.loop.turn_again();
}

bool FleetWorker::take_events() {
  bool any = false;
  while (auto event = driver_.poll_event()) {
    any = true;
    on_event(*event);
  }
  return any;
}

void FleetWorker::dial(ConnectionId id) {
  fleet_.dials.push_back(now().steady);
  client_->dial(id);
}

void FleetWorker::on_opened(ConnectionId id, WebSocketConnection& connection) {
  driver_.on_opened(id, connection);
  mark();
}

void FleetWorker::on_message(ConnectionId id, BytesView message, MessageKind kind) {
  driver_.on_message(id, message, kind);
  mark();
}

void FleetWorker::on_idle(ConnectionId /*id*/) {
  idle_ = true;
  mark();
}

void FleetWorker::on_writable(ConnectionId id) {
  driver_.on_writable(id);
  mark();
}

void FleetWorker::on_closed(ConnectionId id, const CloseFacts& facts) {
  driver_.on_closed(id, facts.code, facts.reason);
  mark();
}

}  // namespace windlass::bench
