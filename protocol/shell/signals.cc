#include "protocol/shell/signals.h"

#include <csignal>
#include <ctime>
#include <utility>

namespace windlass {

Signals::Signals(std::initializer_list<int> signals, std::function<void(int)> on_signal)
    : on_signal_(std::move(on_signal)) {
  static_cast<void>(std::signal(SIGPIPE, SIG_IGN));
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  // The end of the wait is looked at now and then: no signal number is free to mean "stop".
  thread_ = std::jthread{[this, set](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const timespec pause{.tv_sec = 0, .tv_nsec = 200'000'000};
      const int signal = sigtimedwait(&set, nullptr, &pause);
      if (signal > 0 && !stop.stop_requested()) on_signal_(signal);
    }
  }};
}

Signals::~Signals() {
  thread_.request_stop();
}

}  // namespace windlass
