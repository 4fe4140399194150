// The thread that may wait for a disk. Takes one batch at a time and answers on the control loop; what is
// decided meanwhile forms the next batch, which is how many small commits become one.
#pragma once

#include <memory>
#include <thread>

#include "protocol/adapters/event_loop.h"
#include "scheduler/seams/state_store.h"

namespace windlass {

class StoreThread final {
 public:
  struct Answer {
    Result<Version> version;
    Duration took{};
    std::size_t rows = 0;
  };

  explicit StoreThread(std::unique_ptr<StateStore> store)
      : store_(std::move(store)), thread_([this] { loop_.run(); }) {}
  ~StoreThread() {
    loop_.stop();
    thread_.join();
  }

  // `answer` is called on `reply_to`.
  template <class Function>
  void commit(WriteBatch batch, Version expected, EventLoop& reply_to, Function answer) {
    loop_.post([this, batch = std::move(batch), expected, &reply_to, answer = std::move(answer)]() mutable {
      const auto begun = std::chrono::steady_clock::now();
      auto version = store_->commit(batch, expected);
      reply_to.post([answer = std::move(answer), version = std::move(version),
                     took = std::chrono::steady_clock::now() - begun, rows = batch.size()]() mutable {
        answer(Answer{std::move(version), took, rows});
      });
    });
  }

 private:
  std::unique_ptr<StateStore> store_;
  EventLoop loop_;
  std::thread thread_;
};

}  // namespace windlass
