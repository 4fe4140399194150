// Which agents are believed when they say that their worker holds an application. A worker that names an
// application gets its requests and settings, so an agent's word is not enough: the scheduler says which
// instance may serve which application, or the settings do. Stands before the core, which never hears of what
// is not granted.
//
//   open(), handle(), apply(), handle_timeout() -> poll_decision(), poll_trust() until empty, poll_timeout()
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/base/time.h"
#include "runtime/core/messages.h"
#include "runtime/core/values.h"

namespace windlass::runtime {

// Of the settings. "*" stands for any instance or application; no tenant for any.
struct AgentGrant {
  std::string tenant;
  std::string instance;
  std::string application;
  friend bool operator==(const AgentGrant&, const AgentGrant&) = default;
};

// biz.runtime.grants. A whole one takes the place of all before, once its last part is here.
struct GrantUpdate {
  std::uint64_t epoch = 0;
  bool is_whole = false;
  std::optional<bool> is_first = {};  // part of a whole one; not said: those of one epoch belong together
  bool has_more = false;
  std::vector<std::pair<std::string, std::string>> granted = {};  // instance and application
  std::vector<std::string> revoked = {};                          // instances
};

struct GateOptions {
  std::vector<AgentGrant> grants = {};
  bool has_scheduler = false;  // which will say more
  // What is not granted may be on its way: the scheduler tells agent and runtime at once.
  Duration wait = seconds{5};
};

class ApplicationGate final {
 public:
  static constexpr std::size_t kGrantsMax = 100'000;

  explicit ApplicationGate(GateOptions options) : options_(std::move(options)) {}
  ApplicationGate(const ApplicationGate&) = delete;
  ApplicationGate& operator=(const ApplicationGate&) = delete;

  void open(ChannelId channel, std::string tenant, std::string instance);
  void close(ChannelId channel);
  bool is_known(ChannelId channel) const { return agents_.contains(channel); }
  // Whether the scheduler assigned it to any instance, be that here or not.
  bool is_granted(std::string_view application) const;
  void handle(ChannelId channel, WorkerSpecialized request, Instant now);
  void forget(ChannelId channel);  // what it asked for: its worker is another one now
  void apply(GrantUpdate update, Instant now);
  void handle_timeout(Instant now);

  struct Decision {
    ChannelId channel;
    WorkerSpecialized request;
    bool is_granted = false;
    std::string reason = {};  // of a refusal
  };
  [[nodiscard]] std::optional<Decision> poll_decision();
  // What an agent serves is not its own any more, or is again.
  [[nodiscard]] std::optional<std::pair<ChannelId, bool>> poll_trust();
  [[nodiscard]] std::optional<Instant> poll_timeout() const;

 private:
  struct Agent {
    std::string tenant;
    std::string instance;
    std::string serves = {};  // what was last granted
    bool is_trusted = true;
    std::optional<WorkerSpecialized> waiting = std::nullopt;
    Instant waiting_since{};
  };
  bool is_granted(const Agent& agent, const std::string& application) const;
  // Before the scheduler's first word nothing is known, and so nothing is refused.
  bool is_waited_for(const Agent& agent, Instant now) const;
  void decide(ChannelId channel, Agent& agent, Instant now);

  GateOptions options_;
  std::map<ChannelId, Agent> agents_;
  std::uint64_t epoch_ = 0;
  std::optional<Instant> whole_at_;                  // when the scheduler had said everything
  std::map<std::string, std::string> granted_;       // by instance
  std::map<std::string, std::string> next_granted_;  // of a whole one that is not complete
  std::uint64_t next_epoch_ = 0;                     // its
  std::deque<Decision> decisions_;
  std::deque<std::pair<ChannelId, bool>> trusts_;
};

}  // namespace windlass::runtime
