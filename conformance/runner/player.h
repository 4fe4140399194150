// Plays one case against the judged, on one thread and in bounded time, and says what came of it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "conformance/runner/case.h"
#include "conformance/runner/pattern.h"
#include "conformance/runner/process.h"
#include "conformance/runner/setup.h"
#include "conformance/runner/wire.h"

namespace windlass::conformance {

class Player final : private WireOwner {
 public:
  // All references must outlive the player.
  Player(const Setup& setup, const Case& played, int revision);
  ~Player() override;

  CaseResult play();

 private:
  // How a case ends before its last step.
  struct Stopped {
    std::string outcome;
    std::string expected;
    std::string came;
  };
  struct Arrival {
    json::object frame;  // as revision 2 writes it
    Instant at;
    std::uint64_t number = 0;  // of all arrivals of the case
    bool is_repeat = false;    // a sequenced frame that came before
  };
  // A connection that a case names.
  struct Link {
    std::string name;
    std::unique_ptr<Wire> wire;
    std::deque<Arrival> inbox;
    std::size_t looked_at = 0;  // arrivals at its front that a step passed over
    std::deque<std::string> pongs;
    std::optional<WireEnd> end;
    std::optional<HttpHead> head;  // the peer's: a response, or a request
    std::string nonce;             // of our upgrade
    int status = 0;                // the answer to the upgrade
    bool is_ready = false;         // a session lives on it
  };
  // The runner's half of the session.
  struct Streams {
    std::uint64_t next_seq = 0;
    std::map<std::uint64_t, json::object> sent;  // and not acknowledged yet
    std::uint64_t acked_next = 0;
    std::uint64_t received_next = 0;
    std::set<std::uint64_t> early;
    std::uint64_t duplicates = 0;
    std::uint64_t window = 256;
    std::uint64_t window_bytes = 8'388'608;
  };

  // player.cc: steps.
  void run_steps();
  void run_step(const json::object& step);
  void judge(CaseResult& result);
  void judge_close(CaseResult& result);
  void do_send(Link& link, const json::object& step);
  void do_send_frame(Link& link, const json::object& value);
  void do_expect(Link& link, const json::object& step);
  void do_expect_one_of(Link& link, const json::object& step);
  void do_expect_none(Link& link, const json::object& step);
  void do_expect_http(Link& link, const json::object& wanted);
  void do_expect_close(Link& link, const json::object& step);
  void do_expect_pong(Link& link, const json::object& step);
  void do_hook(const json::object& hook);
  void do_stop_worker(const json::value& how);
  void do_expect_exit(const json::object& step);

  // player_links.cc: connections and the ceremony.
  void renew(Link& link);
  void connect(Link& link, const json::object& options);
  void accept_dial(Link& link, const json::object& options, Duration within);
  void reach(Link& link);
  void cut(Link& link);
  void greet(Link& link, const json::object& options);
  void open(Link& link, const json::object& options);
  void reconnect(Link& link, const json::object& options, Duration within);
  void open_as_worker(Link& link, const json::object& options);
  void open_as_scheduler(Link& link, const json::object& options);
  void resume_as_worker(Link& link, const json::object& options);
  void resume_as_scheduler(Link& link, const json::object& options);
  void take_accept(Link& link, const json::object& accept, const json::object& options);
  void send_accept(Link& link, bool resumed, const json::object& options);
  void replay(Link& link, const json::value* last_seen);
  void start_worker();
  void on_head(Wire& wire, const HttpHead& head) override;
  void answer_upgrade(Link& link, const HttpHead& head);

  // player_frames.cc: frames out and in, and the duties done by themselves.
  void do_send_examples(Link& link, const json::array& beginnings);
  json::object filled(json::object frame);
  std::string send(Link& link, json::object frame, const std::string* bytes = nullptr);
  void transmit(Link& link, const json::object& frame, const std::string* bytes);
  void transmit_text(Link& link, const std::string& text, const std::string* bytes);
  json::object merged(json::object payload, const json::object& options, const char* name) const;
  json::object ack_state();
  void send_ack(Link& link, const json::object& payload, const std::string& for_id);
  void do_duties(Link& link, const json::object& frame);  // after note_received
  bool note_received(const json::object& frame);          // whether it came before
  void note_acked(const json::object& frame);
  void on_message(Wire& wire, BytesView payload, MessageKind kind) override;
  void on_pong(Wire& wire, BytesView payload) override;
  void on_violation(Wire& wire, const std::string& what) override;
  void on_end(Wire& wire, const WireEnd& end) override;
  Variables variables();

  // Waiting.
  json::object expect_frame(Link& link, const json::value& pattern, Duration within);
  json::object expect_frame(Link& link, const std::map<std::string, json::value>& patterns, Duration within,
                            std::string* which);
  bool wait(Duration within, const std::function<bool()>& condition);
  void check_violation();
  void begin_action();
  [[noreturn]] void stop(std::string outcome, std::string expected, std::string came) const;

  Link& link(const std::string& name);
  Link& link_of(const Wire& wire);
  void log(WireEvent::Kind kind, const std::string& connection, std::string text);
  std::string masked(std::string text) const;

  const Setup& setup_;
  const Case& case_;
  int revision_;
  EventLoop loop_;
  Instant begin_;
  Instant deadline_;
  std::map<std::string, std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<Wire>> old_wires_;  // whose callbacks may still be under way
  Streams streams_;
  Variables variables_;
  std::vector<Fault> faults_;
  std::optional<std::pair<std::string, json::object>> reordered_;  // held back: connection and frame
  std::set<std::string> secrets_;
  std::optional<std::string> violation_;
  std::string outcome_ = "done";
  std::vector<WireEvent> wire_log_;
  std::uint64_t next_id_ = 0;
  std::size_t step_ = 0;
  bool in_ceremony_ = false;
  Instant matched_at_{};  // when the frame came that a step expected last
  std::uint64_t arrivals_ = 0;
  std::uint64_t since_ = 0;    // the first arrival that can have to do with what the runner did last
  bool in_callback_ = false;   // the loop is running: nothing may wait
  bool is_stopped_ = false;    // a hook stopped the scheduler, and none started it again
  json::object dial_options_;  // of the accept_dial under way

  std::string state_folder_;
  Socket listener_;
  std::unique_ptr<Process> worker_;
};

}  // namespace windlass::conformance
