#include "worker-agent/adapters/http_forward.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <utility>

#include "protocol/adapters/readiness.h"
#include "protocol/adapters/socket_stream.h"
#include "protocol/base/http_limits.h"
#include "protocol/base/limits.h"
#include "protocol/http/http_response_reader.h"

namespace windlass::agent {
namespace {

using function_rpc::HttpStreamFrame;
using function_rpc::HttpStreamHead;

// What a worker may call its place, and what is dialled.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kLoopbackNames{
    {{"localhost", "127.0.0.1"}, {"127.0.0.1", "127.0.0.1"}, {"[::1]", "::1"}}};
constexpr Duration kProbeEvery = milliseconds{50};

bool is_same_name(std::string_view one, std::string_view lower) {
  return std::ranges::equal(one, lower,
                            [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; });
}

// Of one connection, and not of the message that travels on it.
bool is_of_connection(std::string_view name) {
  constexpr std::array<std::string_view, 11> kNames{
      "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization",
      "te",         "trailer",    "upgrade",          "transfer-encoding",  "content-length",
      "expect"};
  return std::ranges::any_of(kNames, [&](std::string_view each) { return is_same_name(name, each); });
}

// A header that the worker must be able to believe is the runtime's word, so nothing may end it early.
bool is_clean(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
}

std::string request_text(const HttpStreamHead& head, std::uint16_t port) {
  std::string text = head.method + ' ' + head.target + " HTTP/1.1\r\n";
  text += "Host: localhost:" + std::to_string(port) + "\r\n";
  for (const auto& [name, value] : head.headers) {
    if (is_of_connection(name) || is_same_name(name, "host") || !is_clean(name) || !is_clean(value)) continue;
    text.append(name).append(": ").append(value).append("\r\n");
  }
  if (head.has_body && head.body_bytes) {
    text += "Content-Length: " + std::to_string(*head.body_bytes) + "\r\n";
  } else if (head.has_body) {
    text += "Transfer-Encoding: chunked\r\n";
  }
  return text += "Connection: close\r\n\r\n";
}

HttpStreamHead answer_head(const HttpStreamedHead& from, bool is_head_only) {
  HttpStreamHead head{.status = from.status, .body_bytes = from.body_bytes};
  head.has_body = !is_head_only && from.status != 204 && from.status != 304;
  for (const auto& [name, value] : from.headers) {
    if (!is_of_connection(name)) head.headers.emplace_back(name, value);
  }
  return head;
}

std::string forward_chunk_head(std::size_t bytes) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%zx\r\n", bytes);
  return text.data();
}

}  // namespace

Result<HttpPlace> place_of_http_uri(std::string_view uri) {
  const Error wrong{ErrorCode::ProtoSchema, Blame::Peer,
                    "the worker takes HTTP at '" + std::string{uri.substr(0, 200)} +
                        "', which is no address such as http://localhost:1234/"};
  constexpr std::string_view kScheme = "http://";
  if (!uri.starts_with(kScheme)) return wrong;
  uri.remove_prefix(kScheme.size());
  uri = uri.substr(0, uri.find('/'));
  const std::size_t colon = uri.rfind(':');
  if (colon == std::string_view::npos) return wrong;
  const auto* const known =
      std::ranges::find(kLoopbackNames, uri.substr(0, colon), [](const auto& each) { return each.first; });
  if (known == kLoopbackNames.end()) return wrong;
  const std::string_view digits = uri.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (failure != std::errc{} || end != digits.data() + digits.size() || port == 0) return wrong;
  return HttpPlace{std::string{known->second}, port};
}

// One call to the worker's port. Ends by itself: whole, refused, or when either side leaves.
class HttpForward::Exchange final : public std::enable_shared_from_this<Exchange>, private ReadinessEvents {
 public:
  Exchange(HttpForward& owner, std::string id, const HttpStreamHead& head, Socket socket)
      : owner_(owner),
        id_(std::move(id)),
        is_head_only_(head.method == "HEAD"),
        is_chunked_(head.has_body && !head.body_bytes),
        output_(request_text(head, owner.place_->port)),
        head_left_(output_.size()),
        reader_(is_head_only_),
        stream_(owner.loop_, SocketStream::Parts{std::move(socket), nullptr, {}}, *this) {
    stream_.wait_writable();
  }

  const std::string& id() const { return id_; }

  // The connection goes with us: the worker sees that its caller left.
  void cut() {
    stream_.reset_when_closed();
    is_over_ = true;
  }

  void handle(const HttpStreamFrame& frame) {
    if (is_over_ || is_leaving_) return;
    if (frame.abort) return leave();
    if (frame.credit > 0) {
      if (!credit_.grow(frame.credit)) return fail("the runtime gave back more than it was sent");
      advance();
      if (is_over_) return;
    }
    if (!frame.data.empty()) {
      if (is_request_over_ || frame.data.size() > limits::kHttpStreamWindow - waiting_) {
        return fail("the runtime sent more than it may");
      }
      waiting_ += frame.data.size();
      if (is_chunked_) output_ += forward_chunk_head(frame.data.size());
      output_ += frame.data;
      if (is_chunked_) output_ += "\r\n";
    }
    if (frame.is_end && !std::exchange(is_request_over_, true) && is_chunked_) output_ += "0\r\n\r\n";
    if (is_connected_) write();
  }

 private:
  // A function that was called waits for its request, so that it gets before it is told that the caller left.
  void leave() {
    is_leaving_ = true;
    if (head_left_ == 0) return end();
    output_.resize(output_used_ + head_left_);
    waiting_ = 0;
  }

  void on_writable() override {
    if (is_over_) return;
    if (!is_connected_) {
      if (const int error = connect_error(stream_.fd()); error != 0) {
        return fail("the worker's HTTP port does not answer: " + error_text(error));
      }
      is_connected_ = true;
      stream_.wait_readable();
    }
    write();
  }

  void on_readable() override {
    if (is_over_ || is_leaving_ || has_ended_) return;
    const auto self = shared_from_this();
    const SocketStream::Input input = stream_.read();
    if (input.state == SocketStream::ReadState::Failed) return fail("the worker cut its HTTP connection");
    input_.append(input.bytes.data(), input.bytes.size());
    has_ended_ = input.state == SocketStream::ReadState::Ended;
    advance();
    wait();
  }

  void write() {
    const auto self = shared_from_this();
    const SocketStream::Output written = stream_.write(BytesView{output_}.substr(output_used_));
    output_used_ += written.bytes;
    head_left_ -= std::min(head_left_, written.bytes);
    if (written.state == SocketStream::WriteState::Blocked) return stream_.wait_writable();
    if (is_leaving_) return end();
    // All is written, or the write failed. A worker that has heard enough may have answered; what it said is
    // still to be read.
    output_.clear();
    output_used_ = 0;
    if (const std::size_t bytes = std::exchange(waiting_, 0); bytes > 0) {
      owner_.send_(function_rpc::write_http_stream({.invocation_id = id_, .credit = bytes}));
    }
  }

  // Hands on what came, as far as the runtime takes it.
  void advance() {
    const auto self = shared_from_this();
    while (!is_over_) {
      if (!body_.empty()) {
        if (!send_body()) return;
        continue;
      }
      if (is_whole_) {
        owner_.send_(function_rpc::write_http_stream({.invocation_id = id_, .is_end = true}));
        return end();
      }
      auto state = reader_.handle_bytes(input_);
      if (state == HttpResponseReader::State::More && has_ended_) state = reader_.handle_end();
      if (state == HttpResponseReader::State::Refused) return fail(reader_.problem());
      if (state == HttpResponseReader::State::Head) {
        owner_.send_(function_rpc::write_http_stream(
            {.invocation_id = id_, .head = answer_head(reader_.head(), is_head_only_)}));
        continue;
      }
      is_whole_ = state == HttpResponseReader::State::Complete;
      body_ = reader_.take_body();
      if (body_.empty() && !is_whole_) break;
    }
    wait();
  }

  bool send_body() {
    const std::size_t bytes = std::min({body_.size(), credit_.left(), limits::kHttpStreamPartBytes});
    if (bytes == 0) return false;
    credit_.spend(bytes);
    owner_.send_(function_rpc::write_http_stream(
        {.invocation_id = id_, .data = std::string_view{body_}.substr(0, bytes)}));
    body_.erase(0, bytes);
    return true;
  }

  // No more is read than the runtime has room for.
  void wait() {
    if (!is_over_ && !has_ended_ && is_connected_ && body_.empty() && credit_.left() > 0) {
      stream_.wait_readable();
    }
  }

  void fail(const std::string& reason) {
    if (is_over_) return;
    if (!is_leaving_) {
      owner_.send_(function_rpc::write_http_stream({.invocation_id = id_, .abort = reason}));
    }
    end();
  }

  void end() {
    if (std::exchange(is_over_, true)) return;
    // A reset could overtake a head that the worker has not read.
    if (!is_whole_ && !is_leaving_) stream_.reset_when_closed();
    // Not from inside a call of ours.
    owner_.loop_.post([self = shared_from_this(), alive = std::weak_ptr{owner_.alive_}] {
      if (alive.lock()) self->owner_.forget(*self);
    });
  }

  HttpForward& owner_;
  std::string id_;
  bool is_head_only_;
  bool is_chunked_;  // of the request
  Bytes output_;
  std::size_t head_left_;  // of the request's, not written yet
  std::size_t output_used_ = 0;
  std::size_t waiting_ = 0;  // bytes of the request's body in output_
  HttpResponseReader reader_;
  Bytes input_;
  std::string body_;  // of the answer, not sent yet
  function_rpc::HttpStreamCredit credit_{limits::kHttpStreamWindow};
  bool is_connected_ = false;
  bool is_leaving_ = false;  // the caller is gone
  bool is_request_over_ = false;
  bool has_ended_ = false;  // the worker sends no more
  bool is_whole_ = false;   // all of the answer was read
  bool is_over_ = false;
  SocketStream stream_;
};

class HttpForward::Probe final : private ReadinessEvents {
 public:
  Probe(EventLoop& loop, HttpPlace place, Duration patience, std::function<void(bool)> done)
      : loop_(loop),
        place_(std::move(place)),
        until_(loop.now().steady + patience),
        done_(std::move(done)),
        alarm_(loop, [this] { handle_alarm(); }) {
    alarm_.set(loop.now().steady);
  }

 private:
  void on_readable() override {}
  void on_writable() override {
    const bool answers = connect_error(socket_->fd()) == 0;
    answers ? tell(true) : later();
  }

  // Either the pause before the next attempt is over, or all of the time is.
  void handle_alarm() {
    if (loop_.now().steady >= until_ && has_dialled_) return tell(false);
    dial();
  }

  void dial() {
    has_dialled_ = true;
    auto address = numeric_address(place_.address, place_.port);
    auto socket = address ? begin_connect(*address) : Result<Socket>{address.error()};
    if (!socket) return later();
    socket_ = std::make_unique<Readiness>(loop_, *std::move(socket), static_cast<ReadinessEvents&>(*this));
    socket_->wait_writable();
    // A listener whose queue is full lets the connection wait without end.
    alarm_.set(until_);
  }

  void later() {
    socket_.reset();
    if (loop_.now().steady >= until_) return tell(false);
    alarm_.set(std::min(until_, loop_.now().steady + kProbeEvery));
  }

  // The owner may destroy us.
  void tell(bool answers) {
    alarm_.set(std::nullopt);
    socket_.reset();
    loop_.post([done = std::move(done_), answers] { done(answers); });
  }

  EventLoop& loop_;
  HttpPlace place_;
  Instant until_;
  std::function<void(bool)> done_;
  std::unique_ptr<Readiness> socket_;
  bool has_dialled_ = false;
  LoopAlarm alarm_;
};

HttpForward::HttpForward(EventLoop& loop, std::function<void(std::string)> send,
                         std::function<bool(const HttpPlace&)> is_workers)
    : loop_(loop), send_(std::move(send)), is_workers_(std::move(is_workers)) {}

HttpForward::~HttpForward() {
  cut_all();
}

void HttpForward::cut_all() {
  for (const auto& [id, exchange] : exchanges_) exchange->cut();
  exchanges_.clear();
}

void HttpForward::reset() {
  place_.reset();
  probe_.reset();
  cut_all();
}

void HttpForward::probe(const HttpPlace& place, Duration patience, std::function<void(bool)> done) {
  probe_ = std::make_unique<Probe>(loop_, place, patience, std::move(done));
}

void HttpForward::handle(const HttpStreamFrame& frame) {
  if (const auto found = exchanges_.find(frame.invocation_id); found != exchanges_.end()) {
    const auto exchange = found->second;
    return exchange->handle(frame);
  }
  // What is not a beginning belongs to an exchange that ended here first.
  if (frame.head) begin(frame);
}

void HttpForward::begin(const HttpStreamFrame& frame) {
  const auto refuse = [&](std::string_view reason) {
    send_(function_rpc::write_http_stream({.invocation_id = frame.invocation_id, .abort = reason}));
  };
  if (!place_) return refuse("the worker takes no HTTP requests of its own");
  if (!is_workers_(*place_)) return refuse("the worker does not listen where it said that it does");
  if (exchanges_.size() >= limits::kHttpStreamsMax)
    return refuse("the agent forwards as many requests as it may");
  const HttpStreamHead& head = *frame.head;
  const bool is_text =
      std::ranges::none_of(head.method + head.target, [](char c) { return c <= ' ' || c == 0x7F; });
  if (head.method.empty() || !head.target.starts_with('/') || !is_text) {
    return refuse("the runtime sent a request that cannot be written");
  }
  auto address = numeric_address(place_->address, place_->port);
  if (!address) return refuse(address.error().reason);
  auto socket = begin_connect(*address);
  if (!socket) return refuse(socket.error().reason);
  const std::string id{frame.invocation_id};
  const auto exchange = std::make_shared<Exchange>(*this, id, head, *std::move(socket));
  exchanges_.emplace(id, exchange);
  exchange->handle({.invocation_id = frame.invocation_id,
                    .credit = 0,
                    .head = {},
                    .data = frame.data,
                    .is_end = frame.is_end,
                    .abort = frame.abort});
}

void HttpForward::forget(const Exchange& exchange) {
  const auto found = exchanges_.find(exchange.id());
  if (found != exchanges_.end() && found->second.get() == &exchange) exchanges_.erase(found);
}

}  // namespace windlass::agent
