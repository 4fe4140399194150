// Which TCP ports user code may listen on. Without this it could take the port of a service of this machine
// that is stopped for a moment, and get what callers send to that service.
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "worker-agent/run/confine.h"

namespace windlass::agent {
namespace {

// From linux/landlock.h of Linux 6.7; that of Debian 12 is older and has nothing about the network.
constexpr unsigned kVersionFlag = 1U << 0U;   // LANDLOCK_CREATE_RULESET_VERSION
constexpr long kFirstWithNetwork = 4;         // the version of the interface
constexpr int kRuleNetPort = 2;               // LANDLOCK_RULE_NET_PORT
constexpr std::uint64_t kBindTcp = 1U << 0U;  // LANDLOCK_ACCESS_NET_BIND_TCP
struct RulesetAttributes {                    // landlock_ruleset_attr
  std::uint64_t handled_files = 0;
  std::uint64_t handled_network = 0;
};
struct PortAttributes {  // landlock_net_port_attr
  std::uint64_t allowed = 0;
  std::uint64_t port = 0;
};

bool allow(int rules, std::uint32_t port) {
  const PortAttributes attributes{.allowed = kBindTcp, .port = port};
  return ::syscall(SYS_landlock_add_rule, rules, kRuleNetPort, &attributes, 0U) == 0;
}

bool restrict_by(int rules, const std::vector<PortRange>& ports) {
  if (!allow(rules, 0)) return false;  // the kernel then chooses one that is free
  for (const auto& [first, last] : ports) {
    for (std::uint32_t port = first; port <= last; ++port) {
      if (!allow(rules, port)) return false;
    }
  }
  return ::syscall(SYS_landlock_restrict_self, rules, 0U) == 0;
}

}  // namespace

bool install_port_rules(const std::vector<PortRange>& ports) {
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, std::size_t{0}, kVersionFlag);
  if (version < kFirstWithNetwork) {
    if (version >= 0) errno = EOPNOTSUPP;
    return false;
  }
  const RulesetAttributes attributes{.handled_network = kBindTcp};
  const long rules = ::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0U);
  if (rules < 0) return false;
  const bool is_restricted = restrict_by(static_cast<int>(rules), ports);
  const int error = errno;
  ::close(static_cast<int>(rules));
  errno = error;
  return is_restricted;
}

}  // namespace windlass::agent
