// A machine's disk: commits become durable in order, each some time after it was asked for. A crash loses
// what was not durable, or not: any number of the waiting commits may have made it, unconfirmed, and the next
// one may be torn in the middle of its log bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "protocol/base/bytes.h"
#include "tests/sim/context.h"

namespace windlass::sim {

struct Commit {
  Bytes log;                     // appended to the log file
  std::function<void()> apply;   // changes to durable state, all or nothing
  std::function<void()> report;  // tells the owner, unless the machine died first
};

class Disk final {
 public:
  // `defer` runs an action on the machine once it is awake, unless it died.
  Disk(Context& context, Duration commit_time_max, std::function<void(std::function<void()>)> defer)
      : context_(context), commit_time_max_(commit_time_max), defer_(std::move(defer)) {}

  void commit(Commit commit) {
    const Duration slow = context_.random.one_in(50) ? commit_time_max_ * 20 : commit_time_max_;
    free_at_ = std::max(free_at_, context_.now()) + context_.random.below(slow + Duration{1});
    if (trap_ && !commit.log.empty()) {
      // Somewhere between the request and its end.
      const Duration soon = context_.random.below(free_at_ - context_.now() + Duration{1});
      context_.timeline.after(soon, std::exchange(trap_, nullptr));
    }
    waiting_.push_back(std::move(commit));
    context_.timeline.at(free_at_, [this, life = life_] {
      if (life == life_) finish_first();
    });
  }

  // Does this while the next commit of log bytes is under way.
  void set_trap(std::function<void()> trap) { trap_ = std::move(trap); }

  void crash() {
    ++life_;
    trap_ = nullptr;
    free_at_ = context_.now();
    const std::uint64_t made_it = context_.random.below(waiting_.size() + 1);
    for (std::uint64_t i = 0; i < made_it; ++i) {
      ++context_.stats.commits_unconfirmed;
      make_durable(waiting_.front());
      waiting_.pop_front();
    }
    context_.stats.commits_lost += waiting_.size();
    if (!waiting_.empty() && !waiting_.front().log.empty() && context_.chance(70)) {
      ++context_.stats.torn_writes;
      const Bytes& torn = waiting_.front().log;
      log_.append(torn, 0, context_.random.below(torn.size()));
    }
    waiting_.clear();
  }

  const Bytes& log() const { return log_; }
  void replace_log(Bytes log) { log_ = std::move(log); }  // written aside and renamed: cannot tear
  void truncate_log(std::size_t bytes) { log_.resize(bytes); }

 private:
  void make_durable(const Commit& commit) {
    log_.append(commit.log);
    if (commit.apply) commit.apply();
  }

  void finish_first() {
    make_durable(waiting_.front());
    auto report = std::move(waiting_.front().report);
    waiting_.pop_front();
    if (report) defer_(std::move(report));
  }

  Context& context_;
  Duration commit_time_max_;
  std::function<void(std::function<void()>)> defer_;
  std::function<void()> trap_;
  std::deque<Commit> waiting_;
  Bytes log_;
  Duration free_at_{};
  std::uint64_t life_ = 0;
};

}  // namespace windlass::sim
