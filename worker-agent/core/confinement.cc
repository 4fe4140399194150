#include "worker-agent/core/confinement.h"

#include <algorithm>
#include <charconv>
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
}

Confinement in_namespace(const ConfinementFacts& facts, Confinement base) {
  base.kind = ConfinementKind::Namespace;
  std::vector<std::string> folders = facts.private_folders;
  folders.push_back(facts.state_folder);
  for (const std::string& file : facts.secret_files) {
    const std::string folder = file.substr(0, file.rfind('/'));
    // A folder like /etc has more in it than secrets.
    if (std::ranges::count(folder, '/') > 1) folders.push_back(folder);
  }
  hide(base, std::move(folders), facts);
  base.writable = facts.writable;  // everything else is read-only
  for (const std::string& file : facts.secret_files) {
    if (!is_below_any(file, base.hidden)) base.covered.push_back(file);
  }
  for (const std::string& each : base.hidden) {
    if (std::ranges::find(facts.scratch_folders, each) != facts.scratch_folders.end())
      base.scratch.push_back(each);
  }
  return base;
}

bool take_number(std::string_view text, std::uint64_t& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc{} && end == text.data() + text.size();
}

bool take_option(std::string_view name, std::string_view value, Confinement& into) {
  for (const auto& [known, list] :
       {std::pair{"hide", &into.hidden}, std::pair{"scratch", &into.scratch}, std::pair{"show", &into.shown},
        std::pair{"write", &into.writable}, std::pair{"cover", &into.covered}}) {
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
  std::uint64_t number = 0;
  if (!take_number(value, number)) return false;
  if (name == "user") into.ids.user = static_cast<std::uint32_t>(number);
  if (name == "group") into.ids.group = static_cast<std::uint32_t>(number);
  if (name == "exclusive") into.is_user_exclusive = number != 0;
  if (name == "guard") into.is_guarded = number != 0;
  if (name == "processes") into.processes_max = number;
  if (name == "files") into.open_files_max = number;
  return name == "user" || name == "group" || name == "exclusive" || name == "guard" || name == "processes" ||
         name == "files";
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
                               "processes=" + std::to_string(confinement.processes_max),
                               "files=" + std::to_string(confinement.open_files_max)};
  const auto add = [&all](std::string_view name, const std::vector<std::string>& paths) {
    for (const std::string& each : paths) all.push_back(std::string{name} + "=" + each);
  };
  add("hide", confinement.hidden);
  add("scratch", confinement.scratch);
  add("show", confinement.shown);
  add("write", confinement.writable);
  add("cover", confinement.covered);
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

std::vector<Confinement> confinement_choices(const ConfinementFacts& facts, ConfinementLevel level) {
  Confinement base;
  base.open_files_max = facts.open_files_max;
  std::vector<Confinement> all;
  if (level == ConfinementLevel::Off) {
    base.is_guarded = false;
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
    if (other.ids.user != facts.self.user) {
      all.push_back(other);
      // The same, where a folder above what the worker needs keeps it out.
      hide(other, facts.closed, facts);
      if (!other.hidden.empty()) all.push_back(std::move(other));
    }
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
  }
  if (confinement.kind == ConfinementKind::Namespace) {
    gaps.emplace_back(
        "user code has the agent's user id: files of this user outside home, temporary and state folders can "
        "be read, though not changed");
  }
  if (confinement.kind == ConfinementKind::OtherUser && !confinement.is_user_exclusive) {
    gaps.emplace_back(
        "the user of user code is not reserved for it: it can reach other processes of this user, and what "
        "it leaves behind may outlive it");
  }
  if (confinement.processes_max == 0) gaps.emplace_back("the number of user code's processes is not limited");
  return gaps;
}

}  // namespace windlass::agent
