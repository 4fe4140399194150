#include "tests/bench/session_workers.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <unordered_set>

#include "protocol/base/check.h"
#include "protocol/function_rpc/session_channel.h"
#include "schema/proto/function_rpc.pb.h"
#include "tests/bench/load_connection.h"
#include "tests/bench/rpc_load.h"
#include "tests/bench/runtime_under_test.h"
#include "tests/bench/worker_fleet.h"

namespace windlass::bench {
namespace {

namespace rpc = AzureFunctionsRpcMessages;

constexpr const char* kSessionWorkers = "--session-workers";
constexpr const char* kIdle = "idle";
constexpr const char* kSwitching = "switching";
constexpr Duration kBetweenSwitches = milliseconds{10};

// What the pair has seen since the last report, and when somebody was between two applications.
struct Seen {
  std::unordered_set<std::uint64_t> numbers;
  std::map<std::string, std::uint64_t> last_of;  // by worker
  std::uint64_t received = 0;
  std::uint64_t doubled = 0;
  std::uint64_t reordered = 0;
  std::vector<std::pair<Instant, Instant>> switches;

  std::string text() const {
    std::string all =
        std::to_string(received) + " " + std::to_string(doubled) + " " + std::to_string(reordered);
    for (const auto& [from, to] : switches) {
      all += " " + std::to_string(from.time_since_epoch().count()) + " " +
             std::to_string(to.time_since_epoch().count());
    }
    return all;
  }
};

// Answers as a language worker does. Every invocation is answered with two lines of log and what came.
class RpcWorker final : public FleetWorker {
 public:
  RpcWorker(WorkerFleet& fleet, std::size_t number, Seen* seen)
      : FleetWorker(fleet, number), id_("w" + std::to_string(number) + ".1"), seen_(seen) {}

  bool is_initialized() const { return is_initialized_; }
  bool is_ready() const { return is_ready_; }
  std::function<void(bool)> on_switching = [](bool) {};

  // Says so before it answers what comes next, so that those answers find it between two applications.
  void switch_to(std::string application, bool waits_for_work) {
    if (!target_.empty() || !is_ready_) return;
    target_ = std::move(application);
    if (!waits_for_work) say_specialized();
  }

 private:
  void on_event(OwnerEvent& event) override {
    if (const auto* established = std::get_if<Established>(&event.event)) {
      CHECK(!established->resumed);
      sender_.emplace(limits_, id_ + "-");
      rpc::StreamingMessage start;
      start.mutable_start_stream()->set_worker_id(id_);
      say(start);
    } else if (const auto* delivered = std::get_if<Delivered>(&event.event)) {
      CHECK(receiver_.take(delivered->message, [this](std::string_view message) { answer(message); }));
      endpoint().own(event.session, delivered->seq + 1, now());
    } else if (const auto* ended = std::get_if<Ended>(&event.event)) {
      stop_bench("a worker's session ended: " + ended->reason);
    }
  }
  void before_flush() override {
    if (!sender_) return;
    static_cast<void>(
        sender_->pump([&](Message&& message) { return endpoint().send(std::move(message), now()); }));
  }
  void say(const rpc::StreamingMessage& message) {
    CHECK(sender_->push(message.SerializeAsString()));
    mark();
  }

  void answer(std::string_view bytes) {
    rpc::StreamingMessage asked;
    CHECK(asked.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    rpc::StreamingMessage said;
    said.set_request_id(asked.request_id());
    if (asked.has_invocation_request()) return echo(asked.invocation_request());
    if (asked.has_worker_init_request()) {
      rpc::WorkerInitResponse& body = *said.mutable_worker_init_response();
      body.mutable_result()->set_status(rpc::StatusResult::Success);
      (*body.mutable_capabilities())["WorkerStatus"] = "true";
      is_initialized_ = true;
    } else if (asked.has_functions_metadata_request()) {
      rpc::FunctionMetadataResponse& body = *said.mutable_function_metadata_response();
      body.mutable_result()->set_status(rpc::StatusResult::Success);
      rpc::RpcFunctionMetadata& function = *body.add_function_metadata_results();
      function.set_name(kEchoFunction);
      function.set_function_id(kEchoFunction);
      function.add_raw_bindings(R"({"name":"event","type":"queueTrigger","direction":"in","queueName":"q"})");
    } else if (asked.has_function_load_request()) {
      said.mutable_function_load_response()->set_function_id(kEchoFunction);
      said.mutable_function_load_response()->mutable_result()->set_status(rpc::StatusResult::Success);
    } else if (asked.has_worker_status_request()) {
      said.mutable_worker_status_response();
    } else {
      if (asked.has_worker_specialized_response()) handle_specialized(asked.worker_specialized_response());
      return;
    }
    say(said);
    if (said.has_worker_init_response() && seen_ != nullptr) {
      target_ = kSteadyApplication;
      say_specialized();
    }
  }

  void say_specialized() {
    begun_ = steady_now();
    is_ready_ = false;
    rpc::StreamingMessage message;
    rpc::WorkerSpecialized& body = *message.mutable_worker_specialized();
    body.set_worker_id(id_);
    body.set_application_id(target_);
    body.set_metadata_version(kVersion);
    body.set_code_version(kVersion);
    body.set_host_json(R"({"version":"2.0"})");
    body.mutable_reload()->mutable_result()->set_status(rpc::StatusResult::Success);
    say(message);
  }
  void handle_specialized(const rpc::WorkerSpecializedResponse& response) {
    if (response.result().status() != rpc::StatusResult::Success) {
      stop_bench("a worker was not specialized: " + response.result().result());
    }
    seen_->switches.emplace_back(begun_, steady_now());
    target_.clear();
    is_ready_ = true;
  }

  void echo(const rpc::InvocationRequest& request) {
    if (!target_.empty() && is_ready_) say_specialized();
    const std::string& text = request.input_data(0).data().string();
    rpc::StreamingMessage said;
    rpc::InvocationResponse& response = *said.mutable_invocation_response();
    response.set_invocation_id(request.invocation_id());
    response.mutable_result()->set_status(rpc::StatusResult::Success);
    if (text == kReport) {
      response.mutable_return_value()->set_string(seen_->text());
      *seen_ = {};
    } else {
      if (text == kBeginSwitching || text == kEndSwitching) {
        on_switching(text == kBeginSwitching);
      } else {
        count(std::strtoull(text.c_str(), nullptr, 10));
        for (const char* line : {"0", "1"}) say_log(request.invocation_id(), line);
      }
      response.mutable_return_value()->set_string(text);
    }
    say(said);
  }
  void say_log(const std::string& invocation, const char* line) {
    rpc::StreamingMessage message;
    message.mutable_rpc_log()->set_invocation_id(invocation);
    message.mutable_rpc_log()->set_level(rpc::RpcLog::Debug);
    message.mutable_rpc_log()->set_message(line);
    say(message);
  }
  void count(std::uint64_t number) {
    ++seen_->received;
    if (!seen_->numbers.insert(number).second) ++seen_->doubled;
    std::uint64_t& last = seen_->last_of[id_];
    if (number < last) ++seen_->reordered;
    last = number;
  }

  std::string id_;
  Seen* seen_;  // none: a placeholder for ever
  function_rpc::ChannelLimits limits_;
  function_rpc::ChannelReceiver receiver_{limits_};
  std::optional<function_rpc::ChannelSender> sender_;
  std::string target_;  // of the switch that is wanted or under way
  Instant begun_{};
  bool is_initialized_ = false;
  bool is_ready_ = false;
};

// The second of the two goes to an application that nobody knows yet, and back.
class Switching final {
 public:
  Switching(EventLoop& loop, RpcWorker& steady, RpcWorker& wanderer)
      : loop_(loop), wanderer_(wanderer), alarm_(loop, [this] { step(); }) {
    steady.on_switching = wanderer.on_switching = [this](bool is_wanted) {
      is_wanted_ = is_wanted;
      if (is_wanted) step();
    };
  }

 private:
  void step() {
    if (!is_wanted_ && !is_away_) return;  // it ends at home
    if (wanderer_.is_ready()) {
      is_away_ = !is_away_;
      wanderer_.switch_to(is_away_ ? "side-" + std::to_string(++sides_) : kSteadyApplication, is_away_);
    }
    alarm_.set(loop_.now().steady + kBetweenSwitches);
  }

  EventLoop& loop_;
  RpcWorker& wanderer_;
  LoopAlarm alarm_;
  std::uint64_t sides_ = 0;
  bool is_wanted_ = false;
  bool is_away_ = false;
};

}  // namespace

SessionWorkers::SessionWorkers(const Identity& identity, std::uint16_t port, std::size_t first,
                               std::size_t count, const char* mode)
    : process_({"/proc/self/exe", kSessionWorkers, std::to_string(port),
                identity.authority.certificate_file(), std::to_string(first), std::to_string(count), mode}) {
  const std::string line = process_.read_line();
  if (line != "ready\n") stop_bench("session workers did not start: " + line);
}

SessionWorkers SessionWorkers::placeholders(const Identity& identity, std::uint16_t port, std::size_t first,
                                            std::size_t count) {
  return {identity, port, first, count, kIdle};
}

SessionWorkers SessionWorkers::switching_pair(const Identity& identity, std::uint16_t port) {
  return {identity, port, 0, 2, kSwitching};
}

bool plays_session_workers(int argc, char** argv) {
  if (argc != 7 || std::string_view{argv[1]} != kSessionWorkers) return false;
  const bool is_switching = std::string_view{argv[6]} == kSwitching;
  WorkerFleet fleet{{.port = static_cast<std::uint16_t>(std::atoi(argv[2])),
                     .authority_file = argv[3],
                     .path = "/ws/worker",
                     .token = kWorkerToken}};
  Seen seen;
  std::vector<std::unique_ptr<RpcWorker>> workers;
  std::vector<FleetWorker*> all;
  const auto first = static_cast<std::size_t>(std::atoi(argv[4]));
  for (std::size_t i = 0; i < static_cast<std::size_t>(std::atoi(argv[5])); ++i) {
    workers.push_back(std::make_unique<RpcWorker>(fleet, first + i, is_switching ? &seen : nullptr));
    all.push_back(workers.back().get());
  }
  fleet.start(all, [&](const FleetWorker& each) {
    const auto& worker = static_cast<const RpcWorker&>(each);
    return is_switching ? worker.is_ready() : worker.is_initialized();
  });
  std::optional<Switching> switching;
  if (is_switching) switching.emplace(fleet.loop, *workers[0], *workers[1]);
  std::fprintf(stderr, "ready\n");
  run_until(fleet.loop, std::nullopt, [] { return false; });  // until it is ended
  return true;
}

}  // namespace windlass::bench
