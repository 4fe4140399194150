// A world from one seed around the runtime's core: agents and workers that crash, hang, are slow, lie, lose
// and resume their links, fall behind, are specialized and switched under load; JobHosts that fail, memory
// that runs short, traffic that is split. Oracles watch everything that leaves the core; in the end nothing
// hurts any more and everything must have come to an end.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "protocol/base/random.h"
#include "runtime/core/runtime_core.h"
#include "tests/sim/runtime/model_channel.h"
#include "tests/sim/seed_run.h"

namespace windlass::sim {

struct RuntimeStats {
  std::uint64_t submitted = 0;
  std::uint64_t refused = 0;
  std::uint64_t completed = 0;
  std::uint64_t abandoned = 0;
  std::uint64_t dead = 0;
  std::uint64_t crashes = 0;
  std::uint64_t hangs = 0;
  std::uint64_t detaches = 0;
  std::uint64_t stalls = 0;
  std::uint64_t switches = 0;
  std::uint64_t held = 0;
  std::uint64_t rerouted = 0;
  std::uint64_t bad_peers = 0;
  std::uint64_t host_failures = 0;
};

class RuntimeWorld final {
 public:
  RuntimeWorld(std::uint64_t seed, bool is_logged);
  // Nothing: every rule held.
  std::optional<BrokenPromise> run();
  const RuntimeStats& stats() const { return stats_; }

 private:
  struct Event {
    Instant at;
    std::uint64_t number;
    std::function<void()> act;
    friend bool operator<(const Event& a, const Event& b) {
      return std::pair{a.at, a.number} > std::pair{b.at, b.number};
    }
  };
  using Channels = std::map<std::uint64_t, std::unique_ptr<ModelChannel>>;

  // runtime_world.cc: time, the shell's part, what is done to the core.
  void after(Duration delay, std::function<void()> act);
  void run_until(Instant end);
  void act();
  void submit();
  void submit_one(runtime::Invocation invocation);
  void hurt_host();
  void poll();
  void do_send(runtime::Send send);
  void do_close(const runtime::CloseChannel& close);
  void do_outcome(const runtime::Outcome& outcome);
  void do_signal(const runtime::Signal& signal);
  bool lacks(const std::string& worker, const std::string& function) const;
  bool is_registered(const runtime::JobHostKey& key, const std::string& function) const;
  void check_grace(const runtime::Outcome& outcome);
  void check_load_failure(const std::string& id, const ModelInvocation& invocation);
  void do_log(const runtime::WorkerLog& log);
  void check_request(ModelChannel& channel, const runtime::InvocationRequest& request);
  bool has_worker(const ModelChannel& channel) const;
  void check_bounds();
  void calm_down();
  void check_calm();
  void stop();

  // world_workers.cc: links and workers.
  void dial(bool is_agent, std::string identity, Duration delay);
  void spawn(ModelChannel& channel);
  void die(ModelChannel& channel);
  void hurt(ModelChannel& channel);
  void crash(ModelChannel& channel, runtime::ChannelEnd end);
  void misbehave(ModelChannel& channel);
  void end(ModelChannel& channel);
  void say(ModelChannel& channel, runtime::WorkerMessage message);
  void say_later(const ModelChannel& channel, Duration delay, runtime::WorkerMessage message);
  void pump_up(ModelChannel& channel);
  void pump_down(ModelChannel& channel);
  void hear(ModelChannel& channel, const runtime::HostMessage& message);
  void run_function(ModelChannel& channel, const runtime::InvocationRequest& request);
  void answer_load(ModelChannel& channel, const runtime::FunctionRef& function);
  void specialize(ModelChannel& channel);
  void note_answer(ModelChannel& channel, const runtime::InvocationResponse& response);
  void note_end(ModelChannel& channel, const runtime::WorkerEnded& ended);
  void note_draining(const std::string& worker);
  void detach(ModelChannel& channel, Duration time);
  void heal(ModelChannel& channel);
  ModelChannel* live(std::uint64_t id, const std::string& worker);
  ModelChannel* any_channel();

  bool chance(std::uint64_t percent) { return random_.below(std::uint64_t{100}) < percent; }
  Duration between(Duration least, Duration most) { return least + random_.below(most - least); }
  runtime::JobHostKey random_host();
  void fail(std::string oracle, std::string what);
  template <class... Parts>
  void log(const char* format, Parts... parts) {
    if (!is_logged_) return;
    std::printf("%10.3f ", std::chrono::duration<double>(now_.time_since_epoch()).count());
    if constexpr (sizeof...(parts) == 0) {
      std::fputs(format, stdout);
    } else {
      std::printf(format, parts...);  // NOLINT: a format of this program
    }
    std::printf("\n");
  }

  Random random_;
  const bool is_logged_;
  runtime::RuntimeOptions options_;
  std::unique_ptr<runtime::RuntimeCore> core_;
  Instant now_{seconds{1000}};
  std::priority_queue<Event> events_;
  std::uint64_t next_event_ = 0;
  bool is_calm_ = false;
  bool is_stopping_ = false;
  bool has_been_short_ = false;  // of memory: the core may drain workers

  Channels channels_;  // open ones
  std::uint64_t next_channel_ = 0;
  std::uint64_t next_agent_ = 0;
  std::vector<runtime::FunctionRef> functions_;
  std::map<std::string, ModelInvocation> invocations_;
  std::uint64_t next_invocation_ = 0;
  std::map<runtime::JobHostKey, std::map<std::string, std::uint32_t>> splits_;
  std::map<runtime::JobHostKey, bool> starved_;
  std::map<std::string, Instant> draining_since_;  // by worker
  RuntimeStats stats_;
  std::optional<BrokenPromise> broken_;
};

}  // namespace windlass::sim
