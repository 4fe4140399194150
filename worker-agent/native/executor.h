// The threads of the worker. One of them reads the stream ("leads"), the others run what is queued. A very
// short function may run on the leader itself; when it turns out not to be short, the watch gives the lead to
// another thread, so the host is heard in any case.
//
// There are two threads more than may run queued work: the leader, and one that can take the lead at any
// time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace windlass::native {

class Work {
 public:
  virtual ~Work() = default;
  virtual void run() = 0;
};

class Executor final {
 public:
  // `lead` is called on one thread at a time. It returns true when it lost the lead (run_inline said so),
  // false when there is nothing more to read.
  Executor(unsigned threads, std::function<bool()> lead);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  void start();
  // False when too many wait already; `work` is then not run. Work stays its owner's.
  bool enqueue(Work& work);

  // The leader's: whether a thread is there to take over.
  bool may_run_inline() const { return idle_.load(std::memory_order_relaxed) > 0; }
  // Runs it here. False: the lead was lost meanwhile, and the caller must return true from `lead` at once.
  bool run_inline(Work& work);

  // Waits until `lead` said that there is nothing more.
  void wait_until_over();
  // Ends the threads. False when user code still runs on one of them, which then cannot be ended.
  bool stop();

 private:
  void thread_body();
  void watch();

  const unsigned run_max_;
  const std::function<bool()> lead_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::condition_variable over_;
  std::deque<Work*> waiting_;
  unsigned running_ = 0;
  bool lead_vacant_ = true;
  bool is_over_ = false;
  bool stopping_ = false;
  std::atomic<int> idle_ = 0;

  // Odd while a function runs on the leader. Whoever steps it on from odd, leader or watch, decides who has
  // the lead.
  std::atomic<std::uint64_t> inline_epoch_ = 0;
  std::atomic<bool> watch_asleep_ = false;
  std::mutex watch_mutex_;
  std::condition_variable watch_wake_;
  std::vector<std::thread> threads_;
};

}  // namespace windlass::native
