#include "worker-agent/native/executor.h"

#include "worker-agent/native/limits.h"

namespace windlass::native {

Executor::Executor(unsigned threads, std::function<bool()> lead)
    : run_max_(threads), lead_(std::move(lead)) {}

void Executor::start() {
  for (unsigned i = 0; i < run_max_ + 2; ++i) threads_.emplace_back([this] { thread_body(); });
  threads_.emplace_back([this] { watch(); });
}

void Executor::thread_body() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (lead_vacant_ && !is_over_) {
      lead_vacant_ = false;
      lock.unlock();
      const bool lost = lead_();
      lock.lock();
      if (lost) {
        --running_;  // the watch has counted what ran here
      } else {
        is_over_ = true;
        over_.notify_all();
      }
    } else if (!waiting_.empty() && running_ < run_max_) {
      Work* const work = waiting_.front();
      waiting_.pop_front();
      ++running_;
      lock.unlock();
      work->run();
      lock.lock();
      --running_;
    } else {
      ++idle_;
      wake_.wait(lock);
      --idle_;
    }
  }
}

bool Executor::enqueue(Work& work) {
  const std::lock_guard lock(mutex_);
  if (waiting_.size() >= kWaitingMax) return false;
  waiting_.push_back(&work);
  if (running_ < run_max_ && idle_.load(std::memory_order_relaxed) > 0) wake_.notify_one();
  return true;
}

bool Executor::run_inline(Work& work) {
  std::uint64_t epoch = inline_epoch_.fetch_add(1) + 1;
  if (watch_asleep_.load()) {
    const std::lock_guard lock(watch_mutex_);
    watch_asleep_ = false;
    watch_wake_.notify_one();
  }
  work.run();
  return inline_epoch_.compare_exchange_strong(epoch, epoch + 1);
}

void Executor::watch() {
  std::uint64_t seen = 0;
  int quiet = 0;
  std::unique_lock lock(watch_mutex_);
  while (true) {
    watch_wake_.wait_for(lock, kTakeoverTick);
    {
      const std::lock_guard state(mutex_);
      if (stopping_) return;
    }
    std::uint64_t epoch = inline_epoch_.load();
    if (epoch != seen) {
      seen = epoch;
      quiet = 0;
    } else if (epoch % 2 == 1) {
      // Locked first: the leader that loses the lead by this counts its run off, which must be counted by
      // then.
      const std::lock_guard state(mutex_);
      if (inline_epoch_.compare_exchange_strong(epoch, epoch + 1)) {
        ++running_;
        lead_vacant_ = true;
        wake_.notify_one();
      }
    } else if (++quiet == kQuietTicks) {
      quiet = 0;
      watch_asleep_ = true;
      // A run that began before the flag was up would not have woken us.
      if (inline_epoch_.load() == epoch) watch_wake_.wait(lock, [this] { return !watch_asleep_.load(); });
      watch_asleep_ = false;
    }
  }
}

void Executor::wait_until_over() {
  std::unique_lock lock(mutex_);
  over_.wait(lock, [this] { return is_over_; });
}

bool Executor::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (running_ > 0) return false;
    stopping_ = true;
    wake_.notify_all();
  }
  {
    const std::lock_guard lock(watch_mutex_);
    watch_asleep_ = false;
    watch_wake_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  return true;
}

}  // namespace windlass::native
