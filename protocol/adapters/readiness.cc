#include "protocol/adapters/readiness.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <utility>

namespace windlass {
namespace {

// The concrete executor: a type-erased one costs a virtual call and an allocation per wait.
using Descriptor = boost::asio::posix::basic_stream_descriptor<boost::asio::io_context::executor_type>;

}  // namespace

struct Readiness::Watched {
  Watched(EventLoop& loop, Socket socket, ReadinessEvents* e)
      : descriptor(loop.context().get_executor(), socket.release()), events(e) {
    boost::system::error_code ignored;
    descriptor.native_non_blocking(true, ignored);
  }

  Descriptor descriptor;
  ReadinessEvents* events;  // null once the owner is gone
  bool reading = false;
  bool writing = false;
};

Readiness::Readiness(EventLoop& loop, Socket socket, ReadinessEvents& events)
    : watched_(std::make_shared<Watched>(loop, std::move(socket), &events)) {}

Readiness::~Readiness() {
  if (!watched_) return;
  watched_->events = nullptr;
  boost::system::error_code ignored;
  watched_->descriptor.close(ignored);
}

int Readiness::fd() const {
  return watched_->descriptor.native_handle();
}

void Readiness::wait_readable() {
  if (std::exchange(watched_->reading, true)) return;
  watched_->descriptor.async_wait(Descriptor::wait_read,
                                  [watched = watched_](const boost::system::error_code&) {
                                    watched->reading = false;
                                    if (watched->events != nullptr) watched->events->on_readable();
                                  });
}

void Readiness::wait_writable() {
  if (std::exchange(watched_->writing, true)) return;
  watched_->descriptor.async_wait(Descriptor::wait_write,
                                  [watched = watched_](const boost::system::error_code&) {
                                    watched->writing = false;
                                    if (watched->events != nullptr) watched->events->on_writable();
                                  });
}

Socket Readiness::release() {
  watched_->events = nullptr;
  Socket socket{watched_->descriptor.release()};
  watched_.reset();
  return socket;
}

}  // namespace windlass
