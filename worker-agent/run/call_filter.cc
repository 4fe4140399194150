// The filter of system calls. A list of what is refused rather than of what is allowed: languages differ in
// what they need, and none needs these.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <vector>

#include "worker-agent/run/confine.h"

namespace windlass::agent {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;  // unknown: no filter
#endif

constexpr std::array kRefused{
    // Other processes.
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, SYS_pidfd_getfd,
    // The kernel's keys, programs, counters and page faults.
    SYS_add_key, SYS_request_key, SYS_keyctl, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd,
    // What is done through such a ring passes no filter.
    SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
    // The system.
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_setns, SYS_unshare, SYS_move_mount, SYS_open_tree,
    SYS_fsopen, SYS_fsmount, SYS_fspick, SYS_mount_setattr, SYS_open_by_handle_at, SYS_init_module,
    SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_kexec_file_load, SYS_reboot, SYS_swapon,
    SYS_swapoff, SYS_acct, SYS_quotactl, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime,
    SYS_sethostname, SYS_setdomainname};

// A process in a namespace of its own would have privileges there. CLONE_NEWTIME is none of clone's: its bit
// is a part of the signal's number.
constexpr std::uint32_t kNamespaces =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

// Other ways to listen for TCP callers, which the rules for ports do not see (port_rules.cc), and the option
// by which a process says which port the kernel is to choose. Not all C libraries have these names.
constexpr std::uint32_t kFamilySmc = 43;       // AF_SMC
constexpr std::uint32_t kProtocolSmc = 256;    // IPPROTO_SMC
constexpr std::uint32_t kProtocolMptcp = 262;  // IPPROTO_MPTCP
constexpr std::uint32_t kLevelIp = 0;          // SOL_IP
constexpr std::uint32_t kLocalPortRange = 51;  // IP_LOCAL_PORT_RANGE

sock_filter load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}

// The lower half, on both architectures.
sock_filter load_argument(std::size_t number) {
  return load(offsetof(seccomp_data, args) + number * sizeof(std::uint64_t));
}

sock_filter answer(std::uint32_t value) {
  return BPF_STMT(BPF_RET | BPF_K, value);
}

// Goes on with the next step if it is equal, else behind as many more.
sock_filter unless_equal_skip(std::uint32_t value, std::size_t steps) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, static_cast<std::uint8_t>(steps));
}

// Expects the call's number to be loaded, and leaves it so for other calls.
void refuse_other_listeners(std::vector<sock_filter>& program) {
  const std::array sockets{load_argument(0),
                           unless_equal_skip(kFamilySmc, 1),
                           answer(SECCOMP_RET_ERRNO | EAFNOSUPPORT),
                           load_argument(2),
                           unless_equal_skip(kProtocolSmc, 1),
                           answer(SECCOMP_RET_ERRNO | EPROTONOSUPPORT),
                           unless_equal_skip(kProtocolMptcp, 1),
                           answer(SECCOMP_RET_ERRNO | EPROTONOSUPPORT),
                           answer(SECCOMP_RET_ALLOW)};
  program.push_back(unless_equal_skip(SYS_socket, sockets.size()));
  program.insert(program.end(), sockets.begin(), sockets.end());
  const std::array options{load_argument(1),
                           unless_equal_skip(kLevelIp, 3),
                           load_argument(2),
                           unless_equal_skip(kLocalPortRange, 1),
                           answer(SECCOMP_RET_ERRNO | ENOPROTOOPT),
                           answer(SECCOMP_RET_ALLOW)};
  program.push_back(unless_equal_skip(SYS_setsockopt, options.size()));
  program.insert(program.end(), options.begin(), options.end());
}

}  // namespace

bool install_call_filter() {
  if (kArchitecture == 0) return false;
  std::vector<sock_filter> program;
  program.push_back(load(offsetof(seccomp_data, arch)));
  // Calls by another numbering than this machine's own would slip through.
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0));
  program.push_back(answer(SECCOMP_RET_ERRNO | ENOSYS));
  program.push_back(load(offsetof(seccomp_data, nr)));
#if defined(__x86_64__)
  constexpr std::uint32_t kX32 = 0x40000000;
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32, 0, 1));
  program.push_back(answer(SECCOMP_RET_ERRNO | ENOSYS));
#endif
  for (const auto number : kRefused) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1));
    program.push_back(answer(SECCOMP_RET_ERRNO | EPERM));
  }
  refuse_other_listeners(program);
  // Its flags lie in memory, which no filter sees. Without it, C libraries take clone.
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1));
  program.push_back(answer(SECCOMP_RET_ERRNO | ENOSYS));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3));
  program.push_back(load_argument(0));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kNamespaces, 0, 1));
  program.push_back(answer(SECCOMP_RET_ERRNO | EPERM));
  program.push_back(answer(SECCOMP_RET_ALLOW));
  const sock_fprog whole{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole) == 0;
}

}  // namespace windlass::agent
