// The scheduler machine: the production endpoint and driver on a simulated clock, alarm, network and disk. A
// crash loses every session and every connection; the store and the keys stay.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "protocol/driver/scheduler_driver.h"
#include "tests/sim/scheduler_owner.h"
#include "tests/sim/worker_machine.h"

namespace windlass::sim {

// Whom the operator lets in: a bearer token per instance, and one for all.
class Bearers final : public Admission {
 public:
  Result<Done> admit(const AdmissionRequest& request) const override;
  Result<Done> admit_resume(const ResumeRequest&) const override { return Done{}; }
  std::string of(std::string_view instance) const;
  void require(const std::string& instance, std::string bearer) { own_[instance] = std::move(bearer); }

 private:
  std::map<std::string, std::string, std::less<>> own_;
};

class SchedulerMachine final : public Machine, public Listener {
 public:
  SchedulerMachine(const MachineParts& parts, const WorldOptions& options);
  ~SchedulerMachine() override;

  void start();
  void crash(bool peers_hear);
  bool is_up() const { return process_ != nullptr; }
  bool is_idle() const;

  // Nothing is confirmed when the process dies first: the client tries again.
  void submit(const Row& row, std::function<void()> confirm);
  void drain(const std::string& instance, Duration deadline);
  void drain_all(Duration window);
  void reset(const std::string& instance);
  void rotate_token(const std::string& instance);
  void add_key();  // signs from now on; the oldest of more than three is dropped
  void revoke(const std::string& instance, const std::string& next_bearer);
  std::string bearer_of(const std::string& instance) const { return bearers_.of(instance); }
  void set_credit(const std::string& instance, Credit credit);

  const SchedulerStore& store() const { return store_; }
  const SchedulerEndpoint* endpoint() const { return process_ ? &process_->endpoint : nullptr; }
  // The session of this instance, connected or not; null: none.
  const Session* session_of(const std::string& instance) const;

  // Listener
  bool is_listening() const override { return process_ != nullptr && asleep_until() <= context_.now(); }
  SocketEvents& on_accepted(Socket& socket) override;
  // SocketEvents
  void on_message(Socket& socket, BytesView message, MessageKind kind) override;
  void on_input_used(Socket& socket) override;
  void on_writable(Socket& socket) override;
  void on_closed(Socket& socket, std::uint16_t code, std::string_view reason) override;

 private:
  struct Process {
    Process(SchedulerMachine& machine, std::uint64_t seed);
    TokenAuthority tokens;
    SchedulerEndpoint endpoint;
    SchedulerDriver driver;
    SchedulerOwner owner;
  };

  void on_alarm() override;
  void finish_turn() override;
  void poll_events();
  void check_bounds();
  bool is_stale(Socket& socket) const;

  MachineParts parts_;
  const WorldOptions& options_;
  Bearers bearers_;
  std::vector<SigningKey> keys_;
  std::uint64_t key_count_ = 0;
  Disk disk_;
  SchedulerStore store_;
  std::map<std::uint64_t, Socket*> sockets_;  // by connection id
  std::uint64_t next_connection_ = 1;
  std::unique_ptr<Process> process_;
};

}  // namespace windlass::sim
