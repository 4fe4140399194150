// A worker as the scheduler's core may count on it: it does each command once, keeps what it did in a
// journal, answers a repetition from it, and keeps its own messages until they are acknowledged. Its disk
// never fails; its sessions do.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "protocol/messages/message.h"
#include "scheduler/core/values.h"

namespace windlass::sim {

// What a command says, and what its worker makes of it.
inline std::string payload_of(const CommandKey& key) {
  return R"({"for":")" + key.tenant.value() + "/" + key.id + R"("})";
}
inline std::string result_of(const WorkerKey& worker, const std::string& command) {
  return R"({"by":")" + worker.tenant.value() + "/" + worker.instance.value() + R"(","of":")" + command +
         R"("})";
}

class ModelWorker final {
 public:
  struct Outgoing {
    std::string id;
    std::string corr;
    std::string payload;
  };

  explicit ModelWorker(WorkerKey key) : key_(std::move(key)) {}

  const WorkerKey& key() const { return key_; }
  const std::optional<SessionRef>& session() const { return session_; }
  std::uint32_t parallel_max = 1;  // as it said when it registered
  bool is_healthy = true;          // as it said last

  void open(SessionRef session) {
    session_ = session;
    next_seq_ = 0;
    unacknowledged_.clear();
    down_.clear();
    up_.clear();
    last_number_ = 0;
    is_draining_ = false;
    is_healthy = true;
    for (const Outgoing& each : outbox_) give(each);
  }

  void end() { session_.reset(); }

  void receive(const Message& message) { down_.push_back(message); }
  void drain() { is_draining_ = true; }
  bool is_drained() const { return is_draining_ && down_.empty() && up_.empty(); }
  bool has_unowned() const { return !unacknowledged_.empty(); }
  bool is_idle() const { return down_.empty() && up_.empty() && outbox_.empty(); }

  enum class Work { None, Done, Repeated, Mixed };
  // Works on the next command.
  Work work() {
    if (down_.empty()) return Work::None;
    const Message message = std::move(down_.front());
    down_.pop_front();
    const std::string id{message.id()};
    const auto [at, is_new] = journal_.emplace(id, std::string{message.payload()});
    if (at->second != message.payload()) return Work::Mixed;
    send({"r-" + id, id, result_of(key_, id)});
    return is_new ? Work::Done : Work::Repeated;
  }

  // Kept until it is acknowledged, across sessions.
  void send(Outgoing message) {
    const auto is_same = [&](const Outgoing& each) { return each.id == message.id; };
    if (session_) give(message);
    if (std::ranges::none_of(outbox_, is_same)) outbox_.push_back(std::move(message));
  }

  // The next frame on its way to the scheduler.
  std::optional<std::pair<Seq, Outgoing>> next_up() {
    if (up_.empty()) return std::nullopt;
    auto frame = std::pair{next_seq_++, up_.front()};
    up_.pop_front();
    unacknowledged_.push_back(frame);
    return frame;
  }

  // The scheduler owns everything below `next`; what became owned by this.
  std::deque<Outgoing> acknowledge(Seq next) {
    std::deque<Outgoing> owned;
    while (!unacknowledged_.empty() && unacknowledged_.front().first < next) {
      owned.push_back(std::move(unacknowledged_.front().second));
      unacknowledged_.pop_front();
      const auto is_same = [&](const Outgoing& each) { return each.id == owned.back().id; };
      std::erase_if(outbox_, is_same);
    }
    return owned;
  }

  // False: it came before in this session, or one that was submitted later did.
  bool note_sent(std::uint64_t number) {
    if (number <= last_number_) return false;
    last_number_ = number;
    return true;
  }

  bool has_done(const std::string& id) const { return journal_.contains(id); }

 private:
  void give(const Outgoing& message) { up_.push_back(message); }

  WorkerKey key_;
  std::map<std::string, std::string> journal_;  // by id, the payload that was done
  std::deque<Outgoing> outbox_;
  std::optional<SessionRef> session_;
  std::deque<Message> down_;
  std::deque<Outgoing> up_;
  std::deque<std::pair<Seq, Outgoing>> unacknowledged_;  // delivered, not owned
  std::uint64_t last_number_ = 0;
  Seq next_seq_ = 0;
  bool is_draining_ = false;
};

}  // namespace windlass::sim
