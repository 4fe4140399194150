// What the body of one request holds of a bound that all requests of a listener share. It is given back when
// the last who may use the body lets go of it, which may be after the listener's end.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace windlass {

class HttpHeld final {
 public:
  struct Total {
    std::size_t bytes = 0;
    std::size_t bytes_max = 0;
    bool has_room(std::size_t more) const { return more <= bytes_max - bytes; }
  };

  explicit HttpHeld(std::shared_ptr<Total> total) : total_(std::move(total)) {}
  ~HttpHeld() { total_->bytes -= bytes_; }
  HttpHeld(const HttpHeld&) = delete;
  HttpHeld& operator=(const HttpHeld&) = delete;

  std::size_t bytes() const { return bytes_; }
  // False: there is no room for it, and nothing changes.
  bool grow_to(std::size_t bytes) {
    if (!total_->has_room(bytes - bytes_)) return false;
    total_->bytes += bytes - bytes_;
    bytes_ = bytes;
    return true;
  }

 private:
  std::shared_ptr<Total> total_;
  std::size_t bytes_ = 0;
};

}  // namespace windlass
