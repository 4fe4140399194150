#include "runtime/adapters/held_exchange.h"

#include <utility>

namespace windlass::runtime {
namespace {

HttpOutput output_of_response(HttpResponse response) {
  return {response.status, std::move(response.headers), std::move(response.content_type),
          std::move(response.body)};
}

}  // namespace

HeldExchange::HeldExchange(EventLoop& loop, std::string body, std::size_t answer_bytes_max,
                           std::function<void(std::optional<HttpOutput>)> done)
    : loop_(loop), body_(std::move(body)), answer_bytes_max_(answer_bytes_max), done_(std::move(done)) {}

void HeldExchange::set_reading(bool is_wanted) {
  if (!is_wanted || std::exchange(is_given_, true)) return;
  const auto events = events_.lock();
  if (!events) return;
  events->on_body(body_);
  events->on_body_end();
}

void HeldExchange::answer(HttpResponse response) {
  end(output_of_response(std::move(response)));
}

void HeldExchange::answer_unless_begun(Duration after, HttpResponse response) {
  if (has_begun_ || !done_) return;
  late_ = std::make_unique<LoopAlarm>(loop_, [self = shared_from_this(), said = std::move(response)] {
    // Not from inside the alarm, which goes with us.
    self->loop_.post([self, said] {
      if (self->has_begun_ || !self->done_) return;  // meanwhile
      self->end(output_of_response(said));
      if (const auto events = self->events_.lock()) events->on_gone();
    });
  });
  late_->set(loop_.now().steady + after);
}

void HeldExchange::begin(HttpStreamedHead head) {
  has_begun_ = true;
  late_.reset();  // from here on the answer may take its time
  output_.status = head.status;
  output_.headers = std::move(head.headers);
}

void HeldExchange::write(std::string_view bytes) {
  if (output_.body.size() + bytes.size() > answer_bytes_max_) {
    end(std::nullopt);
    if (const auto events = events_.lock()) events->on_gone();
    return;
  }
  output_.body += bytes;
  if (const auto events = events_.lock()) events->on_written(bytes.size());
}

void HeldExchange::finish() {
  end(std::move(output_));
}

void HeldExchange::abort() {
  end(std::nullopt);
}

void HeldExchange::end(std::optional<HttpOutput> output) {
  late_.reset();
  if (const auto done = std::exchange(done_, nullptr)) done(std::move(output));
}

}  // namespace windlass::runtime
