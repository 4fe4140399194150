// Random worlds from seeds: a scheduler that sends what has no result on every session, sessions that end at
// any point, agents that crash with only a prefix of their log, and programs that outlive the agent. Every
// command must be answered, and its effect be there exactly once; a crash of the whole machine may leave it
// undone, but then the answer says so.
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "protocol/base/random.h"
#include "worker-agent/core/agent_core.h"

namespace windlass::agent {
namespace {

constexpr Seq kWindow = 8;

struct Order {
  std::string type;
  std::string payload;
  std::optional<std::string> result;
  int effects = 0;
};

// What survives the agent: a watched program. It is marked as begun before it takes effect.
struct Program {
  std::string command;
  bool begun = false;
  bool took_effect = false;
  bool ended = false;
  bool watcher_lives = true;
};

class AgentWorld {
 public:
  AgentWorld(std::uint64_t seed, bool machine_crashes) : random_(seed), machine_crashes_(machine_crashes) {
    start_agent();
  }

  void run(std::size_t commands) {
    for (std::size_t step = 0; step < 400 || orders_.size() < commands; ++step) {
      if (orders_.size() < commands && random_.one_in(3)) add_order();
      act();
      if (::testing::Test::HasFailure()) return;
    }
    calm_ = true;
    for (std::size_t step = 0; step < 20'000 && !all_answered(); ++step) {
      act();
      if (::testing::Test::HasFailure()) return;
    }
    check_end();
  }
  int crashes() const { return crashes_; }
  int repeats() const { return repeats_; }

 private:
  void add_order() {
    const std::string id = "c-" + std::to_string(orders_.size());
    const std::uint64_t kind = random_.below(std::uint64_t{10});
    if (kind < 2) {
      orders_[id] = {"biz.echo", R"({"id":")" + id + "\"}", {}};
    } else if (kind < 3) {
      orders_[id] = {"biz.other", "{}", {}};
    } else {
      orders_[id] = {"biz.exec", R"({"name":"touch","args":["x"]})", {}};
    }
  }

  void act() {
    switch (random_.below(std::uint64_t{12})) {
      case 0:
        return session_ ? maybe_end_session() : start_session();
      case 1:
      case 2:
        return deliver();
      case 3:
        return begin_commit();
      case 4:
        return end_commit();
      case 5:
        return start_programs();
      case 6:
      case 7:
        return move_programs();
      case 8:
        return send_results();
      case 9:
        return acknowledge();
      case 10:
        while (const auto own = core_->poll_own()) {
          ASSERT_LE(own->next, delivered_next_);
          ASSERT_GT(own->next, owned_next_);
          owned_next_ = own->next;
        }
        while (const auto run = core_->poll_finished_run()) programs_.erase(*run);
        return;
      default:
        if (!calm_ && random_.one_in(8)) crash();
    }
  }

  void start_agent() {
    AgentConfig config;
    config.rules = {{.name = "touch", .program = "/bin/touch", .args = {}, .arg_patterns = {"x"}}};
    config.max_parallel = 3;
    config.compact_bytes_min = 600;
    config.result_id_prefix = "r" + std::to_string(crashes_);
    core_ = std::make_unique<AgentCore>(config, now_);
    const auto recovered = core_->recover(disk_, now_);
    ASSERT_TRUE(recovered) << recovered.error().reason;
    disk_.resize(recovered->valid_bytes);
    for (const Interrupted& each : recovered->interrupted) {
      const auto program = programs_.find(each.run);
      if (program == programs_.end()) {
        core_->handle_never_begun(each, now_);
        continue;
      }
      if (!program->second.watcher_lives && !program->second.begun && !program->second.ended) {
        programs_.erase(program);
        core_->handle_never_begun(each, now_);
        continue;
      }
      core_->handle_still_running(each);
      watched_[each.run] = true;
    }
  }

  void crash() {
    ++crashes_;
    if (committing_ && !committing_->replaces) {
      disk_ += committing_->bytes.substr(0, random_.below(committing_->bytes.size() + 1));
    } else if (committing_ && random_.one_in(2)) {
      disk_ = committing_->bytes;  // the rename was the last thing done
    }
    committing_.reset();
    if (machine_crashes_ && random_.one_in(2)) {
      for (auto& [id, program] : programs_) program.watcher_lives = program.watcher_lives && program.ended;
    }
    for (const Message& message : unacknowledged_) {
      if (random_.one_in(2)) take_result(message);
    }
    unacknowledged_.clear();
    watched_.clear();
    session_.reset();
    start_agent();
  }

  void start_session() {
    session_ = SessionHandle{++sessions_};
    outgoing_.clear();
    for (const auto& [id, order] : orders_) {
      if (!order.result) outgoing_.push_back(id);
    }
    given_ = orders_.size();
    delivered_next_ = owned_next_ = sent_next_ = 0;
    unacknowledged_.clear();
    core_->handle({*session_, Established{}}, now_);
  }

  void maybe_end_session() {
    if (!random_.one_in(calm_ ? 200 : 10)) return;
    Ended ended;
    ended.code = "E.TIMEOUT";
    for (const Message& message : unacknowledged_) {
      // It may have arrived for all the sender knows.
      if (random_.one_in(2)) take_result(message);
      ended.returned.push_back(message);
    }
    core_->handle({*session_, ended}, now_);
    session_.reset();
  }

  void deliver() {
    if (!session_ || delivered_next_ - owned_next_ >= kWindow) return;
    for (; given_ < orders_.size(); ++given_) outgoing_.push_back("c-" + std::to_string(given_));
    if (outgoing_.empty()) return;
    const std::string id = outgoing_.front();
    outgoing_.erase(outgoing_.begin());
    if (!calm_ && random_.one_in(10)) {
      outgoing_.push_back(id);
      ++repeats_;
    }
    const Order& order = orders_[id];
    core_->handle({*session_, Delivered{delivered_next_++,
                                        Message{{.type = order.type, .id = id, .payload = order.payload}}}},
                  now_);
  }

  void begin_commit() {
    if (committing_) return;
    committing_ = core_->poll_batch(now_);
  }
  void end_commit() {
    if (!committing_) return;
    disk_ = committing_->replaces ? committing_->bytes : disk_ + committing_->bytes;
    committing_.reset();
    core_->handle_committed(now_);
  }

  void start_programs() {
    while (const auto run = core_->poll_run()) {
      ASSERT_FALSE(programs_.contains(run->id)) << "a program was started twice";
      // A crash may come between the decision and the start.
      programs_[run->id] = {.command = command_of(run->id)};
      watched_[run->id] = true;
    }
  }
  std::string command_of(const RunId& run) {
    for (const auto& [id, order] : orders_) {
      const std::array<BytesView, 2> key{id, ""};
      if (hex(sha256_parts(key)) == run.value()) return id;
    }
    ADD_FAILURE() << "a run of no command";
    return "";
  }
  static std::string hex(const Digest& digest) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t byte : digest) {
      text += kDigits[byte >> 4U];
      text += kDigits[byte & 15U];
    }
    return text;
  }

  void move_programs() {
    for (auto& [id, program] : programs_) {
      if (program.watcher_lives && random_.one_in(3)) {
        if (!program.begun) {
          program.begun = true;
        } else if (!program.took_effect) {
          program.took_effect = true;
          ++orders_[program.command].effects;
        } else {
          program.ended = true;
        }
      }
      const bool is_over = program.ended || (!program.watcher_lives && program.begun);
      if (is_over && watched_.erase(id) > 0) {
        core_->handle_finished(id, {.end = program.ended ? RunEnd::Exited : RunEnd::Interrupted}, now_);
      }
    }
  }

  void send_results() {
    if (!session_) return;
    while (const Message* message = core_->poll_result()) {
      if (unacknowledged_.size() >= 4) {
        core_->handle_blocked();
        return;
      }
      unacknowledged_.push_back(*message);
      core_->handle_sent(sent_next_++);
    }
  }

  void acknowledge() {
    if (!session_ || unacknowledged_.empty()) return;
    const std::size_t count = 1 + random_.below(unacknowledged_.size());
    for (std::size_t i = 0; i < count; ++i) take_result(unacknowledged_[i]);
    unacknowledged_.erase(unacknowledged_.begin(),
                          unacknowledged_.begin() + static_cast<std::ptrdiff_t>(count));
    core_->handle({*session_, Acknowledged{sent_next_ - unacknowledged_.size()}}, now_);
    core_->handle({*session_, Writable{}}, now_);
  }

  void take_result(const Message& message) {
    const auto order = orders_.find(std::string{message.corr()});
    ASSERT_NE(order, orders_.end());
    const std::string payload{message.payload()};
    if (order->second.type == "biz.exec") {
      ASSERT_TRUE(payload.find("exit_code") != std::string::npos ||
                  payload.find("E.INTERNAL") != std::string::npos)
          << payload;
      const bool is_done = payload.find("exit_code") != std::string::npos;
      ASSERT_TRUE(!is_done || order->second.effects == 1) << "told as done before it was";
    }
    if (!order->second.result) order->second.result = payload;
    ASSERT_EQ(*order->second.result, payload) << "two different answers to one command";
  }

  bool all_answered() const {
    for (const auto& [id, order] : orders_) {
      if (!order.result) return false;
    }
    return true;
  }

  void check_end() {
    for (const auto& [id, order] : orders_) {
      ASSERT_TRUE(order.result) << id << " was never answered";
      if (order.type == "biz.echo") {
        EXPECT_EQ(*order.result, order.payload);
      } else if (order.type == "biz.other") {
        EXPECT_NE(order.result->find("E.CMD.UNKNOWN"), std::string::npos);
      } else if (machine_crashes_ && order.result->find("E.INTERNAL") != std::string::npos) {
        EXPECT_LE(order.effects, 1) << id;
      } else {
        EXPECT_EQ(order.effects, 1) << id;
      }
    }
  }

  Random random_;
  bool machine_crashes_;
  Instant now_{};
  std::unique_ptr<AgentCore> core_;
  std::map<std::string, Order> orders_;
  Bytes disk_;
  std::optional<Batch> committing_;
  std::map<RunId, Program> programs_;  // files and processes: they outlive the agent
  std::map<RunId, bool> watched_;      // by the agent of now
  std::optional<SessionHandle> session_;
  std::vector<std::string> outgoing_;
  std::vector<Message> unacknowledged_;
  std::uint64_t sessions_ = 0;
  std::size_t given_ = 0;
  Seq delivered_next_ = 0;
  Seq owned_next_ = 0;
  Seq sent_next_ = 0;
  int crashes_ = 0;
  int repeats_ = 0;
  bool calm_ = false;
};

void try_worlds(std::uint64_t first, bool machine_crashes) {
  int crashes = 0;
  int repeats = 0;
  for (std::uint64_t seed = first; seed < first + 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    AgentWorld world{seed, machine_crashes};
    world.run(40);
    if (::testing::Test::HasFailure()) return;
    crashes += world.crashes();
    repeats += world.repeats();
  }
  EXPECT_GT(crashes, 300);  // the worlds are what they are meant to be
  EXPECT_GT(repeats, 300);
}

TEST(AgentWorlds, EveryCommandIsAnsweredAndTakesEffectOnceHoweverOftenTheAgentIsKilled) {
  try_worlds(1, false);
}

TEST(AgentWorlds, ALostMachineLeavesNoCommandUnansweredAndNoneDoneTwice) {
  try_worlds(1'000'001, true);
}

}  // namespace
}  // namespace windlass::agent
