// An HTTP/1.1 listener on a loop. Owns sockets, framing, deadlines and the check of bearer tokens; knows
// nothing of what is asked for. Everything is bounded before a token was seen: a request without a good one
// has no body, unless the listener is open to everybody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/adapters/event_loop.h"
#include "protocol/adapters/readiness.h"
#include "protocol/adapters/tls_context.h"
#include "protocol/base/http_limits.h"
#include "protocol/base/limits.h"
#include "protocol/base/result.h"
#include "protocol/crypto/access_token.h"
#include "protocol/http/http_held.h"
#include "protocol/http/http_message.h"

namespace windlass {

struct HttpListenerOptions {
  std::string address = "127.0.0.1";  // numeric
  std::uint16_t port = 0;             // 0: the system chooses
  const TlsContext* tls = nullptr;    // none: clear text; must outlive the listener
  bool clear_text_anywhere = false;   // else clear text is for loopback addresses only
  std::string what = "the admin listener would show its bearer token";  // in clear text, for the error
  std::vector<AccessToken> tokens = {};                                 // none: nobody is authorized
  // Anybody's body is taken, and requests carry all their headers: whoever handles them says who may what.
  bool is_open = false;
  // Requests say whether a stranger sent them. The kernel is asked, so this is for listeners of operators.
  bool asks_for_users = false;
  std::size_t head_bytes_max = limits::kAdminHeadBytesMax;
  std::size_t body_bytes_max = limits::kAdminBodyBytesMax;     // held for each request under way
  std::size_t bodies_bytes_max = limits::kHttpBodiesBytesMax;  // of all of them; at least of a largest one
  std::size_t connections_max = limits::kAdminConnectionsMax;  // and limits::kHttpSparePlaces for probes
  Duration head_time = limits::kAdminHeadTime;                 // from the first byte, TLS included
  Duration body_time = limits::kAdminBodyTime;                 // and more for what came, by the least pace
  Duration idle_time = limits::kAdminIdleTime;
  Duration answer_time = limits::kAdminAnswerTime;
  Duration write_time = limits::kAdminWriteTime;  // and more for what was taken, by the least pace
  std::size_t bytes_per_second_least = limits::kHttpBytesPerSecondLeast;
};

struct HttpListenerCounters {
  std::uint64_t accepted = 0;
  std::uint64_t requests = 0;
  std::uint64_t unauthorized = 0;  // requests with a token that is not ours
  std::uint64_t evicted = 0;       // idle or slow ones that made room
  std::uint64_t timed_out = 0;
  std::uint64_t no_room = 0;  // refused, because the bodies of others hold all they may
  std::uint64_t gone = 0;     // whose clients did not wait for the answer
};

class HttpConnection;

class HttpListener final : private ReadinessEvents, private TimerTarget, private TurnEnd {
 public:
  // Loop thread, or before the loop runs. `loop` and `handler` must outlive the listener.
  static Result<std::unique_ptr<HttpListener>> listen(EventLoop& loop, HttpListenerOptions options,
                                                      HttpHandler& handler);
  ~HttpListener() override;

  // Loop thread only from here on.
  std::uint16_t port() const { return port_; }
  void set_tokens(std::vector<AccessToken> tokens) { options_.tokens = std::move(tokens); }
  void stop_listening();  // open connections go on
  std::size_t connections() const { return connections_.size(); }
  std::size_t busy() const;  // connections that owe somebody an answer, or the rest of one
  std::size_t bodies_bytes() const { return held_->bytes; }
  const HttpListenerCounters& counters() const { return counters_; }

 private:
  friend class HttpConnection;

  HttpListener(EventLoop& loop, HttpListenerOptions options, HttpHandler& handler, Socket listener);
  void on_readable() override;
  void on_writable() override {}
  void on_timer() override;
  void on_turn_end(TurnPhase phase) override;
  bool accept();
  bool make_room();

  // For connections.
  const AccessToken* find_token(std::string_view token) const;
  void forget(std::uint64_t id) { over_.push_back(id); }
  bool is_listening() const { return listener_ != nullptr; }
  // Only requests of probes find a place.
  bool is_full() const {
    return connections_.size() > options_.connections_max && busy() >= options_.connections_max;
  }
  std::string_view date();  // of now, as answers say it

  EventLoop& loop_;
  HttpListenerOptions options_;
  HttpHandler& handler_;
  HttpListenerCounters counters_;
  LoopTimer pause_;  // while the process is out of descriptors
  std::uint16_t port_;
  std::unique_ptr<Readiness> listener_;
  std::uint64_t next_id_ = 1;
  std::uint64_t next_request_ = 1;
  std::shared_ptr<HttpHeld::Total> held_;  // shared with requests that outlive us
  // By age. Shared, because an answer that comes late must find out that its connection is gone.
  std::map<std::uint64_t, std::shared_ptr<HttpConnection>> connections_;
  std::string date_;
  std::int64_t date_at_ = -1;        // that second
  std::vector<std::uint64_t> over_;  // to be destroyed when no call of theirs is on the stack
};

}  // namespace windlass
