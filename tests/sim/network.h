// Connections as pipes of bytes. Messages are framed and read by the production WebSocket codec; bytes arrive
// in chunks cut anywhere, late, or not at all. A connection may break at any byte, be noticed by both ends,
// by one, or much later; what an old connection still carries goes on arriving after a new one exists.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/ids.h"
#include "protocol/messages/control.h"
#include "protocol/seams/transport.h"
#include "protocol/websocket/reader.h"
#include "tests/sim/context.h"

namespace windlass::sim {

enum class End : std::uint8_t { Worker, Scheduler };
constexpr End other(End end) {
  return end == End::Worker ? End::Scheduler : End::Worker;
}
constexpr std::size_t index(End end) {
  return static_cast<std::size_t>(end);
}

struct LinkPlan {
  Duration latency = milliseconds{1};
  Duration jitter{};
  std::uint64_t bytes_per_second = 0;    // 0: unlimited
  std::size_t buffer_bytes = 64 * 1024;  // in flight; beyond it the sender is told Blocked
  std::uint64_t split_percent = 10;      // chance that a chunk is cut in two
  bool corks = false;                    // whether it is full is found only when a turn ends
};

struct DialPlan {
  std::string machine;
  std::string instance;
  Revision revision = Revision::Two;
  LinkPlan link;
  ConnectionId id;
};

// How a connection ends without a word.
struct CutPlan {
  bool worker_notices = true;
  bool scheduler_notices = true;
  Duration notice_max = milliseconds{50};
  Duration late_max{};  // bytes in flight that survive the cut may come so much later
};

class Network;
class Wire;

// One end of a connection, as its machine's driver uses it.
class Socket final : public Transport {
 public:
  Socket(Wire& wire, End end, websocket::Side side) : wire_(wire), end_(end), reader_(side) {}

  SendStatus send(BytesView message, MessageKind kind) override;
  void close(std::uint16_t code, std::string_view reason) override;

  // The end of a turn of its machine. True when what was sent in it has filled the connection and the driver
  // does not know yet.
  bool fills_up();
  // The driver was told to wait, and the turn in which it was told to go on is not over: no frame is sent
  // again by a timer.
  bool is_held_up() const { return blocked_ || unblocking_; }
  bool takes_messages() const { return !is_held_up() && !closing_ && !closed_ && !failed_; }
  Duration free_since() const { return free_since_; }

  // Bytes that the codec did not frame, for peers that break the rules.
  void send_raw(Bytes bytes);
  void set_message_bytes_max(std::size_t bytes) override { reader_.set_message_bytes_max(bytes); }

  Wire& wire() { return wire_; }
  End end() const { return end_; }
  bool is_over() const { return closed_; }

  ConnectionId id{0};  // as its driver knows it

 private:
  friend class Network;
  friend class Wire;

  void receive(Bytes chunk);
  void finish(std::uint16_t code, std::string_view reason, Duration delay);  // tells the driver, once
  void tell_closed(std::uint16_t code, std::string_view reason);
  void frame(BytesView message, MessageKind kind, Bytes& out);

  Wire& wire_;
  End end_;
  websocket::FrameReader reader_;
  class SocketEvents* events_ = nullptr;  // none: the machine died
  bool closing_ = false;                  // a close was written
  bool closed_ = false;                   // the driver was told
  bool finishing_ = false;                // the driver will be told
  bool blocked_ = false;
  Duration free_since_{};    // when the driver was last told to go on
  bool unblocking_ = false;  // the driver is being told that it is not
  bool failed_ = false;      // the kernel knows of the cut already: writes fail
};

// What a machine hears of its sockets.
class SocketEvents {
 public:
  virtual ~SocketEvents() = default;
  virtual void on_message(Socket& socket, BytesView message, MessageKind kind) = 0;
  virtual void on_input_used(Socket& socket) = 0;  // the end of a loop turn
  virtual void on_writable(Socket& socket) = 0;
  virtual void on_closed(Socket& socket, std::uint16_t code, std::string_view reason) = 0;
  virtual Duration asleep_until() const = 0;
};

class Wire final {
 public:
  Wire(Network& network, std::uint64_t number, const DialPlan& plan);

  Socket& socket(End end) { return end == End::Worker ? worker_ : scheduler_; }
  const Socket& socket(End end) const { return end == End::Worker ? worker_ : scheduler_; }
  std::uint64_t number() const { return number_; }
  const std::string& machine() const { return plan_.machine; }    // that dialled
  const std::string& instance() const { return plan_.instance; }  // whom it claims to be; empty: a stranger
  Revision revision() const { return plan_.revision; }
  bool is_broken() const { return pipes_[0].broken && pipes_[1].broken; }

  // Puts a message of nobody's into the stream towards `to`.
  void inject(End to, BytesView message, MessageKind kind);

 private:
  friend class Network;
  friend class Socket;

  struct Segment {
    Bytes bytes;
    Duration at{};
  };
  struct Pipe {
    std::deque<Segment> segments;
    std::size_t in_flight = 0;
    Duration last_at{};
    Duration stalled_until{};
    bool broken = false;  // swallows what is written from now on
    bool pump_scheduled = false;
    bool loses_one = false;
  };

  Pipe& pipe_to(End to) { return pipes_[index(to)]; }
  void push(End to, Bytes bytes);
  void schedule_pump(End to);
  void pump(End to);
  void time_out(End to);
  void break_pipe(End to, std::uint64_t bytes_kept);

  Network& network_;
  std::uint64_t number_;
  DialPlan plan_;
  std::uint64_t bytes_until_cut_ = 0;
  std::optional<CutPlan> cut_plan_;
  Socket worker_;
  Socket scheduler_;
  std::array<Pipe, 2> pipes_;
};

// Sees every message as it is written. What is read is told by the machine that reads it.
class WireObserver {
 public:
  virtual ~WireObserver() = default;
  virtual void on_sent(Wire& wire, End from, BytesView message, MessageKind kind) = 0;
  // Whether the message just written can be recovered when it is lost; if so, it is.
  virtual bool may_lose(Wire& wire, End from) = 0;
  virtual void on_injected(Wire& wire, End to, BytesView message) = 0;
};

// The machine that accepts.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual bool is_listening() const = 0;
  virtual SocketEvents& on_accepted(Socket& socket) = 0;
};

// The machine that dials.
class Dialling {
 public:
  virtual ~Dialling() = default;
  virtual void on_opened(ConnectionId id, Socket& socket) = 0;
  virtual void on_refused(ConnectionId id) = 0;
};

class Network final {
 public:
  Network(Context& context, WireObserver& observer) : context_(context), observer_(observer) {}

  void set_listener(Listener* listener) { listener_ = listener; }
  // `alive` answers whether the process that dialled still waits for this attempt.
  void dial(const DialPlan& plan, Dialling& dialling, SocketEvents& events, std::function<bool()> alive);
  // A connection from outside of the fleet, open at once.
  Socket& connect_stranger(const LinkPlan& link, SocketEvents& events);

  void cut(Wire& wire, const CutPlan& plan);
  // The same, once so many more bytes were written to it: in the middle of whatever goes on then.
  void cut_after(Wire& wire, std::uint64_t bytes, const CutPlan& plan);
  void stall(Wire& wire, End to, Duration time);
  void slow_down(Wire& wire, std::uint64_t bytes_per_second);
  // Something in between drops one message of business, or an ack, and goes on.
  void lose_one(Wire& wire, End to);
  // The process behind this end is gone. `peer_hears`: its kernel still closes the connection.
  void abandon(Socket& socket, bool peer_hears);

  // Connections that are open and whole, oldest first; of one machine, or of all when the name is empty.
  std::vector<Wire*> live(std::string_view machine = {}) const;

  // Partition: dials of this machine fail until then.
  void refuse_dials(Duration until, bool silently) { refuse_until_ = until, refuse_silently_ = silently; }
  void calm() { calm_ = true; }  // the faults are over: no buggify any more

 private:
  friend class Wire;
  friend class Socket;

  Wire& add_wire(const DialPlan& plan);

  Context& context_;
  WireObserver& observer_;
  Listener* listener_ = nullptr;
  std::vector<std::unique_ptr<Wire>> wires_;
  Duration refuse_until_{};
  bool refuse_silently_ = false;
  bool calm_ = false;
};

}  // namespace windlass::sim
