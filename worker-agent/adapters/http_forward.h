// HTTP exchanges between a runtime and the port on which the language worker takes streamed requests. Each is
// one connection to that port, on this machine's loopback: what comes goes on at once, no more is held than
// the window, nothing is tried again and no redirect is followed. There is no listener: pieces come and go on
// the channel to the runtime. Loop thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "protocol/adapters/event_loop.h"
#include "protocol/base/result.h"
#include "protocol/function_rpc/http_stream.h"

namespace windlass::agent {

// Where a worker listens: an address of the loopback, in digits.
struct HttpPlace {
  std::string address;
  std::uint16_t port = 0;
  friend bool operator==(const HttpPlace&, const HttpPlace&) = default;
};

// Of an address such as http://localhost:34567/, which must be on this machine.
Result<HttpPlace> place_of_http_uri(std::string_view uri);

class HttpForward final {
 public:
  // `send` takes messages for the runtime; `is_workers` says whether the worker still listens there.
  HttpForward(EventLoop& loop, std::function<void(std::string message)> send,
              std::function<bool(const HttpPlace& place)> is_workers);
  ~HttpForward();
  HttpForward(const HttpForward&) = delete;
  HttpForward& operator=(const HttpForward&) = delete;

  void set_place(HttpPlace place) { place_ = std::move(place); }
  void cut_all();  // nobody is there to tell: connections are cut without a word
  void reset();    // the same, and the place is no more
  void handle(const function_rpc::HttpStreamFrame& frame);
  std::size_t exchanges() const { return exchanges_.size(); }

  // Asks again and again until somebody accepts there, or the time is over; told from a later turn.
  void probe(const HttpPlace& place, Duration patience, std::function<void(bool answers)> done);

 private:
  class Exchange;
  class Probe;
  void begin(const function_rpc::HttpStreamFrame& frame);
  void forget(const Exchange& exchange);

  EventLoop& loop_;
  std::function<void(std::string)> send_;
  std::function<bool(const HttpPlace&)> is_workers_;
  std::optional<HttpPlace> place_;
  std::map<std::string, std::shared_ptr<Exchange>, std::less<>>
      exchanges_;  // at most limits::kHttpStreamsMax
  std::unique_ptr<Probe> probe_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for tasks that outlive us
};

}  // namespace windlass::agent
