// Brings a Confinement about, in a process with one thread. First the namespaces, for this process and what
// it starts; then, in the process that becomes the worker, everything that cannot be taken back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "worker-agent/core/confinement.h"

namespace windlass::agent {

// Nothing, or what could not be done and why.
std::optional<std::string> enter_namespaces(const Confinement& confinement);

// In the first process of a new process namespace: its own view of processes, which the process that entered
// the namespaces does not share. False: the system does not allow it.
bool mount_own_proc();

// User, limits, privileges.
std::optional<std::string> give_up_privileges(const Confinement& confinement);

// Afterwards. Installs a filter that refuses system calls by which one process looks into others or changes
// the system. False: this machine has no filters.
bool install_call_filter();

// Before the filter. TCP sockets can be bound to these ports, and to one that the kernel chooses, and to no
// other. False: this kernel has no such rules.
bool install_port_rules(const std::vector<PortRange>& ports);

}  // namespace windlass::agent
