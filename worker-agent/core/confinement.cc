#include "worker-agent/core/confinement.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "protocol/base/big_endian.h"
#include "protocol/crypto/digest.h"

namespace windlass::agent {
namespace {

constexpr std::string_view kEndOfOptions = "--";

bool is_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

bool is_below_any(std::string_view path, const std::vector<std::string>& folders) {
  return std::ranges::any_of(folders, [&](const std::string& each) { return is_below(path, each); });
}

// Without those that lie below another one. "/" cannot be hidden.
std::vector<std::string> outermost(std::vector<std::string> folders) {
  std::ranges::sort(folders);
  std::vector<std::string> kept;
  for (std::string& each : folders) {
    if (each.size() > 1 && !is_below_any(each, kept)) kept.push_back(std::move(each));
  }
  return kept;
}

std::vector<std::string> those_below(const std::vector<std::string>& paths,
                                     const std::vector<std::string>& folders) {
  std::vector<std::string> found;
  for (const std::string& each : paths) {
    if (is_below_any(each, folders)) found.push_back(each);
  }
  return found;
}

// Hides the folders and puts back what of them the worker needs.
void hide(Confinement& confinement, std::vector<std::string> folders, const ConfinementFacts& facts) {
  confinement.hidden = outermost(std::move(folders));
  confinement.shown = those_below(facts.needed, confinement.hidden);
  confinement.writable = those_below(facts.writable, confinement.hidden);
  for (const std::string& each : confinement.hidden) {
    if (std::ranges::find(facts.scratch_folders, each) != facts.scratch_folders.end())
      confinement.scratch.push_back(each);
  }
}

// Best first: with folders of its own where everybody else writes to one; the same, where a folder above what
// the worker needs keeps its user out; and without a mount namespace, which an agent may not be allowed to
// make.
void add_other_user(std::vector<Confinement>& all, const Confinement& other, const ConfinementFacts& facts) {
  std::vector<std::string> folders = facts.scratch_folders;
  Confinement apart = other;
  hide(apart, folders, facts);
  const bool has_scratch = !apart.hidden.empty();
  // A worker that has namespaces has its own folder in them, wherever that lies.
  const auto put_own_folder = [&](Confinement& one) {
    if (std::ranges::find(one.writable, facts.own_folder) == one.writable.end() && !facts.own_folder.empty())
      one.writable.push_back(facts.own_folder);
  };
  if (has_scratch) {
    put_own_folder(apart);
    all.push_back(apart);
  }
  Confinement opened = other;
  folders.insert(folders.end(), facts.closed.begin(), facts.closed.end());
  hide(opened, std::move(folders), facts);
  if (opened.hidden != apart.hidden) {
    put_own_folder(opened);
    all.push_back(std::move(opened));
  }
  Confinement shared = other;
  shared.swept = facts.scratch_folders;
  all.push_back(std::move(shared));
}

Confinement in_namespace(const ConfinementFacts& facts, Confinement base) {
  base.kind = ConfinementKind::Namespace;
  std::vector<std::string> folders = facts.private_folders;
  folders.push_back(facts.state_folder);
  for (const std::string& file : facts.secret_files) {
    const std::string folder = file.substr(0, file.rfind('/'));
    // A folder like /etc has more in it than secrets, and so has one that the worker needs.
    const bool is_needed = std::ranges::find(facts.needed, folder) != facts.needed.end() ||
                           std::ranges::find(facts.writable, folder) != facts.writable.end();
    if (std::ranges::count(folder, '/') > 1 && !is_needed) folders.push_back(folder);
  }
  hide(base, std::move(folders), facts);
  base.writable = facts.writable;  // everything else is read-only
  for (const std::string& file : facts.secret_files) {
    // Also one that what is put back would bring with it.
    if (!is_below_any(file, base.hidden) || is_below_any(file, base.shown) ||
        is_below_any(file, base.writable)) {
      base.covered.push_back(file);
    }
  }
  return base;
}

bool take_number(std::string_view text, std::uint64_t& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc{} && end == text.data() + text.size();
}

// "8080-8090"
bool take_ports(std::string_view text, std::vector<PortRange>& into) {
  const std::size_t dash = text.find('-');
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  if (dash == std::string_view::npos || !take_number(text.substr(0, dash), first) ||
      !take_number(text.substr(dash + 1), last)) {
    return false;
  }
  into.push_back({static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(last)});
  return first > 0 && first <= last && last <= std::numeric_limits<std::uint16_t>::max();
}

bool take_number_option(std::string_view name, std::string_view value, Confinement& into) {
  std::uint64_t number = 0;
  if (!take_number(value, number)) return false;
  for (const auto& [known, flag] :
       {std::pair{"exclusive", &into.is_user_exclusive}, std::pair{"guard", &into.is_guarded},
        std::pair{"filter", &into.has_call_filter}, std::pair{"port_rules", &into.has_port_rules},
        std::pair{"proc", &into.has_own_proc}}) {
    if (name != known) continue;
    *flag = number != 0;
    return true;
  }
  for (const auto& [known, limit] :
       {std::pair{"processes", &into.processes_max}, std::pair{"files", &into.open_files_max},
        std::pair{"memory", &into.memory_bytes_max}, std::pair{"space", &into.scratch_bytes_max}}) {
    if (name != known) continue;
    *limit = number;
    return true;
  }
  if (name == "user") into.ids.user = static_cast<std::uint32_t>(number);
  if (name == "group") into.ids.group = static_cast<std::uint32_t>(number);
  return name == "user" || name == "group";
}

bool take_option(std::string_view name, std::string_view value, Confinement& into) {
  for (const auto& [known, list] : {std::pair{"hide", &into.hidden}, std::pair{"scratch", &into.scratch},
                                    std::pair{"show", &into.shown}, std::pair{"write", &into.writable},
                                    std::pair{"cover", &into.covered}, std::pair{"sweep", &into.swept}}) {
    if (name != known) continue;
    list->emplace_back(value);
    return value.starts_with('/');
  }
  if (name == "kind") {
    for (const auto kind :
         {ConfinementKind::OtherUser, ConfinementKind::Namespace, ConfinementKind::Shared}) {
      if (value != to_string(kind)) continue;
      into.kind = kind;
      return true;
    }
    return false;
  }
  if (name == "own") {
    into.own_folder = value;
    return value.starts_with('/');
  }
  if (name == "ports") return take_ports(value, into.ports);
  return take_number_option(name, value, into);
}

}  // namespace

std::string_view to_string(ConfinementKind kind) {
  switch (kind) {
    case ConfinementKind::OtherUser:
      return "user";
    case ConfinementKind::Namespace:
      return "namespace";
    case ConfinementKind::Shared:
      break;
  }
  return "none";
}

std::vector<std::string> to_arguments(const Confinement& confinement) {
  std::vector<std::string> all{"kind=" + std::string{to_string(confinement.kind)},
                               "user=" + std::to_string(confinement.ids.user),
                               "group=" + std::to_string(confinement.ids.group),
                               "exclusive=" + std::to_string(confinement.is_user_exclusive ? 1 : 0),
                               "guard=" + std::to_string(confinement.is_guarded ? 1 : 0),
                               "filter=" + std::to_string(confinement.has_call_filter ? 1 : 0),
                               "port_rules=" + std::to_string(confinement.has_port_rules ? 1 : 0),
                               "proc=" + std::to_string(confinement.has_own_proc ? 1 : 0),
                               "processes=" + std::to_string(confinement.processes_max),
                               "files=" + std::to_string(confinement.open_files_max),
                               "memory=" + std::to_string(confinement.memory_bytes_max),
                               "space=" + std::to_string(confinement.scratch_bytes_max)};
  if (!confinement.own_folder.empty()) all.push_back("own=" + confinement.own_folder);
  for (const auto& [first, last] : confinement.ports)
    all.push_back("ports=" + std::to_string(first) + "-" + std::to_string(last));
  const auto add = [&all](std::string_view name, const std::vector<std::string>& paths) {
    for (const std::string& each : paths) all.push_back(std::string{name} + "=" + each);
  };
  add("hide", confinement.hidden);
  add("scratch", confinement.scratch);
  add("show", confinement.shown);
  add("write", confinement.writable);
  add("cover", confinement.covered);
  add("sweep", confinement.swept);
  all.emplace_back(kEndOfOptions);
  return all;
}

Result<Confinement> parse_confinement(std::span<const std::string> arguments, std::size_t& taken) {
  Confinement confinement;
  for (taken = 0; taken < arguments.size(); ++taken) {
    const std::string_view each = arguments[taken];
    if (each == kEndOfOptions) {
      ++taken;
      return confinement;
    }
    const std::size_t equals = each.find('=');
    if (equals == std::string_view::npos ||
        !take_option(each.substr(0, equals), each.substr(equals + 1), confinement)) {
      return Error{ErrorCode::Internal, Blame::Local, "\"" + std::string{each} + "\" is not an option"};
    }
  }
  return Error{ErrorCode::Internal, Blame::Local, "\"--\" is missing"};
}

Confinement without_missing(Confinement confinement, std::string_view said) {
  const auto is_said = [said](std::string_view line) { return said.find(line) != std::string_view::npos; };
  confinement.has_call_filter = confinement.has_call_filter && !is_said(kNoCallFilter);
  confinement.has_port_rules = confinement.has_port_rules && !is_said(kNoPortRules);
  confinement.has_own_proc = confinement.has_own_proc && !is_said(kNoOwnProc);
  return confinement;
}

std::vector<Confinement> confinement_choices(const ConfinementFacts& facts, ConfinementLevel level) {
  Confinement base;
  base.open_files_max = facts.open_files_max;
  base.memory_bytes_max = facts.memory_bytes_max;
  base.scratch_bytes_max = facts.scratch_bytes_max;
  base.own_folder = facts.own_folder;
  base.ports = facts.ports;
  std::vector<Confinement> all;
  if (level == ConfinementLevel::Off) {
    base.is_guarded = false;
    base.scratch_bytes_max = 0;
    return {base};
  }
  const std::optional<UserIds> user = facts.wanted_user ? facts.wanted_user : facts.own_user;
  if (facts.may_switch_user && user) {
    Confinement other = base;
    other.kind = ConfinementKind::OtherUser;
    other.ids = *user;
    other.is_user_exclusive = !facts.wanted_user && facts.is_own_user_exclusive;
    other.processes_max = facts.processes_max;
    // A user that the settings name and that is the agent's own confines nothing.
    if (other.ids.user != facts.self.user) add_other_user(all, other, facts);
  }
  if (facts.self.user != 0) {
    Confinement apart = in_namespace(facts, base);
    apart.processes_max = facts.processes_max;
    all.push_back(std::move(apart));
  }
  if (level == ConfinementLevel::Best) all.push_back(base);
  return all;
}

UserIds user_for(std::string_view state_folder, std::uint32_t attempt) {
  const Digest digest = sha256(state_folder);
  const std::uint64_t number = big_endian(view_of(digest).substr(0, 8));
  const auto user = static_cast<std::uint32_t>(kFirstUser + (number % kUserCount + attempt) % kUserCount);
  return {user, user};
}

namespace {

void add_scratch_gaps(const Confinement& confinement, std::vector<std::string>& gaps) {
  if (confinement.kind == ConfinementKind::OtherUser && !confinement.has_namespaces()) {
    gaps.emplace_back(
        confinement.is_user_exclusive
            ? "user code shares temporary folders and System V IPC with this machine, because the agent may "
              "make no mount namespace; what a worker left there is removed before the next one starts"
            : "user code shares temporary folders and System V IPC with this machine, because the agent may "
              "make no mount namespace, and the next worker finds what one left there");
  }
  if (confinement.scratch_bytes_max == 0) {
    gaps.emplace_back("what user code writes to disk is not limited");
  } else if (!confinement.has_namespaces()) {
    gaps.emplace_back(
        "language_worker.scratch_max limits each file that user code writes, but not their total size");
  }
}

}  // namespace

std::vector<std::string> secret_gaps(const Confinement& confinement, const ConfinementFacts& facts) {
  std::vector<std::string> gaps;
  if (confinement.kind != ConfinementKind::Namespace) return gaps;
  for (const std::string& file : confinement.covered) {
    gaps.push_back("user code can read " + file +
                   " once it is replaced, since its folder has to be open: keep it in a folder of its own, "
                   "such as /etc/windlass");
  }
  for (const std::string& file : facts.linked_secrets) {
    gaps.push_back("user code can read " + file +
                   " once the link on the way to it is changed: name the file itself in the settings");
  }
  return gaps;
}

std::vector<std::string> confinement_gaps(const Confinement& confinement) {
  std::vector<std::string> gaps;
  if (confinement.kind == ConfinementKind::Shared) {
    gaps.emplace_back(
        "user code runs as the agent's own user: it can read the agent's token and state, change cached "
        "packages and signal other processes of this user");
  }
  if (!confinement.is_guarded) {
    gaps.emplace_back(
        "user code may gain privileges by set-user-id programs, and all system calls are open to it");
  } else if (!confinement.has_call_filter) {
    gaps.emplace_back(
        "no filter of system calls can be installed here: user code may use ptrace, io_uring, bpf and "
        "namespaces as far as the kernel lets its user");
  }
  if (!confinement.is_guarded || !confinement.has_port_rules) {
    gaps.emplace_back(confinement.is_guarded
                          ? "user code may listen on any free port from 1024 on, also on that of a service "
                            "which is stopped "
                            "for a moment: the kernel has no rules for ports (Landlock, Linux 6.7)"
                          : "user code may listen on any free port from 1024 on, also on that of a service "
                            "which is stopped "
                            "for a moment");
  }
  if (confinement.kind == ConfinementKind::Namespace) {
    gaps.emplace_back(
        "user code has the agent's user id: files of this user outside home, temporary and state folders can "
        "be read, though not changed");
  }
  if (confinement.kind == ConfinementKind::Namespace && !confinement.has_own_proc) {
    gaps.emplace_back(
        "user code sees the processes of this machine and their command lines in /proc: the kernel mounts no "
        "other one where something lies over parts of it, as in many containers");
  }
  if (confinement.kind == ConfinementKind::OtherUser && !confinement.is_user_exclusive) {
    gaps.emplace_back(
        "the user of user code is not reserved for it: it can reach other processes of this user, and what "
        "it leaves behind may outlive it");
  }
  add_scratch_gaps(confinement, gaps);
  if (confinement.processes_max == 0) gaps.emplace_back("the number of user code's processes is not limited");
  if (confinement.memory_bytes_max == 0) {
    gaps.emplace_back("the memory of user code is not limited; set language_worker.memory_max");
  }
  return gaps;
}

}  // namespace windlass::agent
