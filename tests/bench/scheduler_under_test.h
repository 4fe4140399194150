// The service itself, as it is installed, in a process of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tests/bench/child_process.h"
#include "tests/bench/wss_contest.h"

namespace windlass::bench {

class SchedulerUnderTest final {
 public:
  static constexpr const char* kToken = "a worker's token";
  static constexpr const char* kAdminToken = "an operator's token";

  // `store` is a file that does not exist yet, or "memory".
  SchedulerUnderTest(const Identity& identity, const std::string& store);
  std::uint16_t port() const { return port_; }
  std::uint16_t admin_port() const { return admin_port_; }
  const ChildProcess& process() const { return *process_; }

 private:
  void write(const std::string& name, const std::string& text) const;
  bool read_ports();

  std::string folder_;
  std::unique_ptr<ChildProcess> process_;
  std::uint16_t port_ = 0;
  std::uint16_t admin_port_ = 0;
};

}  // namespace windlass::bench
