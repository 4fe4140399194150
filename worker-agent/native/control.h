// A thread of its own for what is asked once in a while and may take long, in the order in which it was
// asked.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace windlass::native {

class Control final {
 public:
  Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;
  ~Control();

  // False when too much waits already; the task is then not run.
  [[nodiscard]] bool post(std::function<void()> task);
  // Whether something posted is not done yet. Exact for the thread that posts.
  bool is_busy() const { return pending_.load() > 0; }
  // False when a task still runs; the thread then stays.
  bool stop();

 private:
  void thread_body();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  std::atomic<int> pending_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace windlass::native
