// Signals as calls on a thread of their own. Make it in main before any other thread, which then inherits the
// blocked mask; processes that are started must get an empty mask again.
#pragma once

#include <functional>
#include <initializer_list>
#include <thread>

namespace windlass {

class Signals final {
 public:
  // `on_signal` is called on the signal thread: post to a loop from it. SIGPIPE is ignored from here on.
  Signals(std::initializer_list<int> signals, std::function<void(int)> on_signal);
  ~Signals();  // no call comes afterwards
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

 private:
  std::function<void(int)> on_signal_;
  std::jthread thread_;
};

}  // namespace windlass
