// Tells when a socket can be read or written. The only file, beside the loop, that sees Boost.Asio.
#pragma once

#include <memory>

#include "protocol/adapters/event_loop.h"
#include "protocol/adapters/socket.h"

namespace windlass {

class ReadinessEvents {
 public:
  virtual ~ReadinessEvents() = default;
  virtual void on_readable() = 0;
  virtual void on_writable() = 0;
};

// Owns the socket while it watches it. Each wait is answered once; an error or hang-up answers both kinds.
class Readiness final {
 public:
  Readiness(EventLoop& loop, Socket socket, ReadinessEvents& events);
  ~Readiness();  // no event comes afterwards
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  int fd() const;
  void wait_readable();  // does nothing when already waiting
  void wait_writable();
  // Gives the socket away; no event comes afterwards.
  Socket release();

 private:
  struct Watched;
  // Shared with the handlers under way: one that already completed may still be queued when we are gone.
  std::shared_ptr<Watched> watched_;
};

}  // namespace windlass
