// How a language worker is kept apart from the agent: which ways there are on a machine, best first, and how
// the agent tells windlass-run about the one that it chose. Decides; does nothing.
//
//   OtherUser  the worker runs as another user, so the permissions of files and processes protect the agent.
//              Needs root, or CAP_SETUID and CAP_SETGID. With CAP_SYS_ADMIN too, it has a mount and an IPC
//              namespace, where the folders that everybody writes to are its own.
//   Namespace  the worker runs as the agent's user in a user, mount, process and IPC namespace of its own:
//              folders with secrets are empty there, everything else is read-only, and other processes do not
//              exist. Needs a kernel that lets everybody make user namespaces.
//   Shared     neither works: the worker can do what the agent's user can.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/result.h"

namespace windlass::agent {

enum class ConfinementKind : std::uint8_t { OtherUser, Namespace, Shared };
std::string_view to_string(ConfinementKind kind);

struct UserIds {
  std::uint32_t user = 0;
  std::uint32_t group = 0;
  friend bool operator==(const UserIds&, const UserIds&) = default;
};

// TCP ports, both ends among them.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  friend bool operator==(const PortRange&, const PortRange&) = default;
};

struct Confinement {
  ConfinementKind kind = ConfinementKind::Shared;
  UserIds ids;                        // of OtherUser
  bool is_user_exclusive = false;     // nothing else runs as this user, so all its processes may be killed
  bool is_guarded = true;             // no new privileges, a filter of system calls, rules for ports
  bool has_call_filter = true;        // if it is guarded: windlass-run can install that filter here
  bool has_port_rules = true;         // if it is guarded: windlass-run can limit which ports it binds here
  bool has_own_proc = true;           // of Namespace: the worker's /proc shows its own processes only
  std::vector<std::string> hidden;    // folders that become empty
  std::vector<std::string> scratch;   // of those, the ones that may be written to
  std::vector<std::string> shown;     // put back below hidden folders, read-only
  std::vector<std::string> writable;  // put back below hidden folders
  std::vector<std::string> covered;   // files that become empty
  std::vector<std::string> swept;     // shared with other users; an exclusive user's files there are removed
  std::vector<PortRange> ports;       // that it may bind, besides those that the kernel chooses
  std::string own_folder;             // the worker's home; of `writable`, if it has namespaces
  // No limit if 0.
  std::uint64_t processes_max = 0;
  std::uint64_t open_files_max = 0;
  std::uint64_t memory_bytes_max = 0;   // of all its processes
  std::uint64_t scratch_bytes_max = 0;  // of all that it writes; of one file, if it has no namespaces
  bool has_namespaces() const { return kind == ConfinementKind::Namespace || !hidden.empty(); }
  friend bool operator==(const Confinement&, const Confinement&) = default;
};

// On windlass-run's command line: "user=61034", "hide=/var/lib/x", ... up to "--".
std::vector<std::string> to_arguments(const Confinement& confinement);
// Stops behind "--"; `taken` says how many arguments that were.
Result<Confinement> parse_confinement(std::span<const std::string> arguments, std::size_t& taken);

// What `windlass-run check` says, one in a line, of walls that it could not put up though the others stand.
inline constexpr std::string_view kNoCallFilter = "without a filter of system calls";
inline constexpr std::string_view kNoPortRules = "without rules for ports";
inline constexpr std::string_view kNoOwnProc = "without a /proc of its own";
// The confinement without those walls.
Confinement without_missing(Confinement confinement, std::string_view said);

enum class ConfinementLevel : std::uint8_t {
  Required,  // the agent does not start without
  Best,      // the best that the machine allows
  Off,
};

// What the agent knows of itself and of the machine. Paths are absolute and without links.
struct ConfinementFacts {
  UserIds self;
  bool may_switch_user = false;
  std::optional<UserIds> wanted_user;  // from the settings
  std::optional<UserIds> own_user;     // without one in the settings
  bool is_own_user_exclusive = false;  // it is reserved
  std::string state_folder;
  std::vector<std::string> private_folders;  // hidden where that takes a namespace: homes, temporary folders
  std::vector<std::string> scratch_folders;  // of those, the ones that programs expect to write to
  std::vector<std::string> secret_files;
  std::vector<std::string> linked_secrets;  // those that are named by way of a link, as they are named
  std::vector<std::string> needed;          // folders that the worker must be able to read
  std::vector<std::string> writable;        // and to write
  std::string own_folder;                   // of those, the one that is the worker's alone
  std::vector<std::string> closed;          // folders above those that other users may not enter
  std::vector<PortRange> ports;             // that it may bind
  std::uint64_t processes_max = 0;
  std::uint64_t open_files_max = 0;
  std::uint64_t memory_bytes_max = 0;
  std::uint64_t scratch_bytes_max = 0;
};

// Best first. The last one works everywhere, unless the level is Required. The first that windlass-run can
// bring about is taken.
std::vector<Confinement> confinement_choices(const ConfinementFacts& facts, ConfinementLevel level);

// The range of users for workers. useradd and systemd-homed give people ids up to 60513, other ranges of
// systemd's end at 60705, and its dynamic users begin at 61184; nobody is 65534. systemd leaves 60706 to
// 61183 unused. Ids above 65535 would not exist in many containers.
inline constexpr std::uint32_t kFirstUser = 60706;
inline constexpr std::uint32_t kUserCount = 478;

// The users that an agent tries, in this order: attempt 0, 1, ... kUserCount - 1. All of the range, and the
// same for the same folder.
UserIds user_for(std::string_view state_folder, std::uint32_t attempt);

// The gap of an agent whose user has another agent on this machine.
inline constexpr std::string_view kNeighbourGap =
    "another agent of this user runs on this machine: functions of each can read the other's state, keys and "
    "settings";
// Secrets of a worker with the agent's user that are hidden only until they are replaced, one sentence each.
// A mount over a file goes when another one is renamed over that file, and a link may lead elsewhere.
std::vector<std::string> secret_gaps(const Confinement& confinement, const ConfinementFacts& facts);
// What a worker that is confined like this can still do, one sentence each; none: all is as it should be.
std::vector<std::string> confinement_gaps(const Confinement& confinement);

}  // namespace windlass::agent
