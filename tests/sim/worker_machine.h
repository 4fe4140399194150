// One worker machine: the production endpoint and driver on a simulated clock, alarm, network and disk, with
// an owner on top. It may crash, come back, be cloned, and be told to drain.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "protocol/driver/worker_driver.h"
#include "tests/sim/machine.h"
#include "tests/sim/options.h"
#include "tests/sim/worker_owner.h"

namespace windlass::sim {

struct MachineParts {
  Context& context;
  Network& network;
  SessionChecker& sessions;
  DutyChecker& duties;
  Decoder& decoder;
};

class WorkerMachine final : public Machine, public Dialer, public Dialling {
 public:
  WorkerMachine(const MachineParts& parts, std::string name, std::string instance, const WorkerPlan& plan,
                Duration own_delay_max);
  ~WorkerMachine() override;

  void start();
  void crash(bool peer_hears);
  void set_trap(std::function<void()> trap) { disk_.set_trap(std::move(trap)); }  // see disk.h
  void retire(bool peer_hears);                                                   // for good
  bool is_up() const { return process_ != nullptr; }
  bool is_ready() const;
  std::string unfinished() const;  // what is left to do or to send; empty: nothing

  void accept_event(Outgoing event);
  void drain(Duration deadline);
  void set_credit(Credit credit);
  void set_memory(double percent);
  void set_bearer(const std::string& bearer);
  void change_revision();

  const std::string& instance() const { return instance_; }
  const WorkerPlan& plan() const { return plan_; }
  const WorkerEndpoint* endpoint() const { return process_ ? &process_->endpoint : nullptr; }
  const std::string& session() const { return process_->owner.session(); }

  // Dialer, Dialling
  void dial(ConnectionId id) override;
  void on_opened(ConnectionId id, Socket& socket) override;
  void on_refused(ConnectionId id) override;
  // SocketEvents
  void on_message(Socket& socket, BytesView message, MessageKind kind) override;
  void on_input_used(Socket& socket) override;
  void on_writable(Socket& socket) override;
  void on_closed(Socket& socket, std::uint16_t code, std::string_view reason) override;

 private:
  struct Process {
    Process(WorkerMachine& machine, WorkerOptions options, std::uint64_t seed);
    WorkerEndpoint endpoint;
    WorkerDriver driver;
    WorkerOwner owner;
  };

  void on_alarm() override;
  void finish_turn() override;
  void poll_events();
  void check_bounds();
  void check_backoff(const BackingOff& event);

  MachineParts parts_;
  std::string instance_;
  WorkerPlan plan_;
  Duration own_delay_max_;
  std::string bearer_ = "let-me-in";
  Disk disk_;
  WorkerStore store_;
  std::map<std::uint64_t, Socket*> sockets_;  // by wire: their order must not depend on the heap
  ConnectionId dialled_{0};
  bool stopping_ = false;  // drained: the process is about to end
  bool retired_ = false;
  std::optional<Ended> ended_;  // since the last delay was told
  std::unique_ptr<Process> process_;
};

}  // namespace windlass::sim
