// The client's end of a streamed call whose request is at hand and whose answer is wanted whole: that of an
// order to invoke a function that streams. Loop thread only.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/adapters/event_loop.h"
#include "protocol/http/http_message.h"
#include "runtime/adapters/rpc_values.h"

namespace windlass::runtime {

class HeldExchange final : public HttpExchange, public std::enable_shared_from_this<HeldExchange> {
 public:
  // `done` is called once: with the answer, or with none where it is broken or too large.
  HeldExchange(EventLoop& loop, std::string body, std::size_t answer_bytes_max,
               std::function<void(std::optional<HttpOutput>)> done);

  void set_events(const std::shared_ptr<HttpExchangeEvents>& events) { events_ = events; }

  void set_reading(bool is_wanted) override;
  void answer(HttpResponse response) override;
  void answer_unless_begun(Duration after, HttpResponse response) override;
  void begin(HttpStreamedHead head) override;
  void write(std::string_view bytes) override;
  void finish() override;
  void abort() override;

 private:
  void end(std::optional<HttpOutput> output);

  EventLoop& loop_;
  std::string body_;
  std::size_t answer_bytes_max_;
  std::function<void(std::optional<HttpOutput>)> done_;
  std::weak_ptr<HttpExchangeEvents> events_;  // they hold us
  HttpOutput output_;
  std::unique_ptr<LoopAlarm> late_;
  bool is_given_ = false;  // the request's body
  bool has_begun_ = false;
};

}  // namespace windlass::runtime
