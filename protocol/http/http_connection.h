// One connection of a listener: reads a request, has it answered, writes the answer, and again. Each
// step has a deadline, so that a slow peer holds nothing for long.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/adapters/event_loop.h"
#include "protocol/adapters/readiness.h"
#include "protocol/adapters/socket_owner.h"
#include "protocol/adapters/socket_stream.h"
#include "protocol/base/bytes.h"
#include "protocol/http/http_listener.h"
#include "protocol/http/http_reader.h"

namespace windlass {

class HttpConnection final : public std::enable_shared_from_this<HttpConnection>,
                             private ReadinessEvents,
                             private TimerTarget {
 public:
  // The listener owns the connection.
  HttpConnection(HttpListener& listener, std::uint64_t id, SocketStream::Parts parts, std::string peer);

  void begin();
  // Whether it may be closed without taking an answer from anybody: nothing is asked, or nobody waits.
  bool is_idle_or_slow() const {
    return state_ == State::Reading || state_ == State::Lingering ||
           (state_ == State::Answering && has_ended_);
  }
  bool is_busy() const {
    return state_ == State::Answering || state_ == State::Writing || state_ == State::Streaming;
  }
  void close();

 private:
  enum class State : std::uint8_t {
    Reading,
    Answering,  // the handler has the request
    Writing,
    Streaming,  // bodies flow: see http_connection_stream.cc
    Lingering,  // everything is written; what the peer still sends is thrown away
    Closed,
  };

  void on_readable() override;
  void on_writable() override;
  void on_timer() override;

  class StreamSide;
  // An exchange under way.
  struct Flow {
    std::shared_ptr<HttpExchangeEvents> events = {};
    std::uint64_t number = 0;
    bool is_reading = false;    // more of the body is wanted
    bool is_body_over = false;  // all of it was handed on
    bool has_begun = false;     // the answer's head was written
    bool is_finished = false;   // the answer is whole
    bool is_chunked = false;
    bool has_body = true;                    // of the answer
    std::optional<std::uint64_t> left = {};  // of a body of known length
    std::optional<HttpResponse> late = {};   // the answer, if none begins in time
    std::size_t unreported = 0;              // bytes of the answer's body in output_
  };

  // http_connection_stream.cc
  bool begin_stream();
  void set_reading(bool is_wanted);
  void answer_stream(const HttpResponse& response);
  void answer_late(Duration after, HttpResponse response);
  void begin_answer(const HttpStreamedHead& head);
  void write_stream(std::string_view bytes);
  void finish_stream();
  void abort_stream();
  void advance_stream();
  void hand_on_body();
  void flush_stream();
  void end_stream();
  void time_stream();
  bool is_stream(std::uint64_t number) const { return flow_ && flow_->number == number; }

  void advance();
  void handle_head();
  bool hold_body();
  void refuse_for_room();
  void handle_request();
  void look_at_user(HttpRequest& request);
  void tell_gone();
  void answer(std::uint64_t number, const HttpResponse& response);
  void refuse(const Problem& problem);
  void respond(const HttpResponse& response);
  WireFraming framing() const;
  void write();
  void linger();
  void wait_readable();
  void set_deadline(Duration time);
  void set_deadline(Duration first, std::size_t bytes);

  HttpListener& listener_;
  std::uint64_t id_;
  std::string peer_;                                 // its address
  std::optional<std::optional<SocketOwner>> owner_;  // of the client's end, once somebody asked
  State state_ = State::Reading;
  LoopTimer timer_;
  SocketStream stream_;
  HttpReader reader_;
  Bytes input_;
  Bytes output_;
  std::size_t output_used_ = 0;
  std::uint64_t request_number_ = 0;
  std::uint64_t request_id_ = 0;    // as the handler knows it; 0: nobody is to be told
  Instant begun_{};                 // when the first byte of the body or of the answer could flow
  std::shared_ptr<HttpHeld> held_;  // of the body that is being read
  std::optional<Flow> flow_;        // while Streaming
  bool is_authorized_ = false;
  bool is_last_ = false;    // no request is read after this answer
  bool is_idle_ = true;     // nothing of the next request came yet
  bool has_ended_ = false;  // the peer sends no more
  bool is_advancing_ = false;
};

}  // namespace windlass
