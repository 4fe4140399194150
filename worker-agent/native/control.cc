#include "worker-agent/native/control.h"

#include "worker-agent/native/limits.h"

namespace windlass::native {

Control::Control() : thread_([this] { thread_body(); }) {}

Control::~Control() {
  if (!stop()) thread_.detach();
}

bool Control::post(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (tasks_.size() >= kControlTasksMax) return false;
  ++pending_;
  tasks_.push_back(std::move(task));
  wake_.notify_one();
  return true;
}

bool Control::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (pending_.load() > 0) return false;
    stopping_ = true;
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
  return true;
}

void Control::thread_body() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (stopping_) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
    --pending_;
  }
}

}  // namespace windlass::native
