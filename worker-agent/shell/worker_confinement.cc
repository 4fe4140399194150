#include "worker-agent/shell/worker_confinement.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "worker-agent/adapters/confinement_probe.h"
#include "worker-agent/adapters/files.h"
#include "worker-agent/adapters/package_tree.h"
#include "worker-agent/adapters/user_claim.h"

namespace windlass::agent {
namespace {

constexpr std::string_view kScratch = "/scratch";
constexpr std::string_view kPackages = "/packages";

std::string folder_of(const std::string& path) {
  return std::filesystem::path{path}.parent_path().string();
}

void add_existing(std::vector<std::string>& into, const std::string& path) {
  std::error_code error;
  if (!path.empty() && std::filesystem::exists(path, error)) into.push_back(real_path(path));
}

void add_secret(ConfinementFacts& facts, const std::string& path) {
  const std::size_t before = facts.secret_files.size();
  add_existing(facts.secret_files, path);
  if (facts.secret_files.size() == before) return;
  std::error_code error;
  const std::string named = std::filesystem::absolute(path, error).lexically_normal().string();
  if (named != facts.secret_files.back()) facts.linked_secrets.push_back(named);
}

// What the worker must be able to read: its program, its own folder, packages, and what the settings add.
std::vector<std::string> needed_folders(const AgentSettings& settings, const std::string& state_folder) {
  const LanguageWorkerSettings& worker = *settings.worker;
  std::vector<std::string> needed{state_folder + std::string{kPackages}};
  add_existing(needed, worker.config.folder);
  for (const std::string& program : {worker.executable, real_path(worker.executable)}) {
    // An installation has its libraries beside bin.
    const std::string folder = folder_of(program);
    const bool is_bin = std::filesystem::path{folder}.filename() == "bin" && folder.size() > 8;
    add_existing(needed, is_bin ? folder_of(folder) : folder);
  }
  for (const std::string& each : worker.readable) add_existing(needed, each);
  return needed;
}

ConfinementFacts gather(const AgentSettings& settings, const std::string& state_folder) {
  ConfinementFacts facts;
  facts.self = own_ids();
  facts.may_switch_user = may_switch_user();
  facts.wanted_user = settings.worker->user;
  facts.state_folder = state_folder;
  facts.ports = settings.worker->ports;
  facts.processes_max = settings.worker->processes_max;
  facts.open_files_max = settings.worker->open_files_max;
  facts.memory_bytes_max = settings.worker->memory_bytes_max;
  facts.scratch_bytes_max = settings.worker->scratch_bytes_max;
  const std::string user_run = "/run/user/" + std::to_string(facts.self.user);
  // Those where everybody writes; /dev/shm and /dev/mqueue have what POSIX calls IPC.
  for (const char* each : {"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock"})
    add_existing(facts.scratch_folders, each);
  facts.private_folders = facts.scratch_folders;
  const char* const home = std::getenv("HOME");
  for (const std::string& each :
       {std::string{home == nullptr ? "" : home}, std::string{"/home"}, std::string{"/root"}, user_run}) {
    add_existing(facts.private_folders, each);
  }
  add_secret(facts, settings.file);
  add_secret(facts, settings.token_file);
  add_secret(facts, settings.runtime.token_file);
  if (settings.runtime.tls.identity) add_secret(facts, settings.runtime.tls.identity->key_file);
  add_secret(facts, settings.keys_file);
  if (settings.metrics) {
    add_secret(facts, settings.metrics->access.token_file);
    add_secret(facts, settings.metrics->access.tokens_file);
    if (settings.metrics->tls) add_secret(facts, settings.metrics->tls->identity.key_file);
  }
  facts.needed = needed_folders(settings, state_folder);
  facts.own_folder = state_folder + std::string{kScratch};
  facts.writable = {facts.own_folder};
  for (const std::string& each : settings.worker->writable) add_existing(facts.writable, each);
  std::vector<std::string> all = facts.needed;
  all.insert(all.end(), facts.writable.begin(), facts.writable.end());
  facts.closed = closed_folders(all);
  return facts;
}

// The state folder is entered by the worker's group on its way to packages, and by nobody else.
Result<Done> fit_state_folder(const std::string& folder, const Confinement& how) {
  const bool is_other = how.kind == ConfinementKind::OtherUser;
  const bool is_fit = is_other ? ::chown(folder.c_str(), static_cast<uid_t>(-1), how.ids.group) == 0 &&
                                     ::chmod(folder.c_str(), 0710) == 0
                               : ::chmod(folder.c_str(), 0700) == 0;
  if (!is_fit) return file_error(folder, "cannot be closed to others", errno);
  return Done{};
}

Result<Done> make_scratch(const std::string& folder, const Confinement& how) {
  if (auto made = make_folder(folder); !made) return made;
  const bool is_other = how.kind == ConfinementKind::OtherUser;
  if (::chmod(folder.c_str(), 0700) != 0 ||
      (is_other && ::chown(folder.c_str(), how.ids.user, how.ids.group) != 0)) {
    return file_error(folder, "cannot be given to the language worker", errno);
  }
  return Done{};
}

void tell(const WorkerConfinement& found, const std::vector<std::string>& refused, JsonLog& log) {
  std::string reasons;
  for (const std::string& each : refused) reasons += (reasons.empty() ? "" : "; ") + each;
  std::string gaps;
  for (const std::string& each : found.gaps()) gaps += (gaps.empty() ? "" : "; ") + each;
  const LogFields fields{{"confinement", to_string(found.how().kind)},
                         {"user", std::uint64_t{found.user()}},
                         {"gaps", gaps},
                         {"reason", reasons}};
  const bool is_whole = found.how().has_call_filter && found.how().has_port_rules && found.how().has_own_proc;
  if (found.is_apart() && is_whole) return log.info("user code is confined", fields);
  if (found.is_apart()) return log.warn("user code is confined", fields);
  log.error("USER CODE IS NOT CONFINED: it can do whatever this agent's user can", fields);
}

}  // namespace

Result<WorkerConfinement> WorkerConfinement::open(const AgentSettings& settings, bool is_alone,
                                                  JsonLog& log) {
  WorkerConfinement found;
  found.supervisor_ = settings.watcher;
  found.state_folder_ = real_path(settings.state_folder);
  const std::string packages = found.state_folder_ + std::string{kPackages};
  for (const std::string& each : {packages, found.state_folder_ + std::string{kScratch}}) {
    if (auto made = make_folder(each); !made) return made.error();
  }
  ConfinementFacts facts = gather(settings, found.state_folder_);
  std::vector<std::string> refused;
  if (facts.may_switch_user && !facts.wanted_user && settings.worker->confine != ConfinementLevel::Off) {
    if (auto claim = claim_user(kUserLocks, found.state_folder_); !claim) {
      // Where nothing can be reserved, as in a container without a writable /run, it is better than the
      // agent's own, but its processes are not all ours to end.
      facts.own_user = user_for(found.state_folder_, 0);
      refused.push_back(claim.error().reason);
    } else if (*claim) {
      facts.own_user = (*claim)->ids;
      facts.is_own_user_exclusive = true;
      found.user_lock_ = std::move((*claim)->lock);
    } else {
      refused.push_back("no user id from " + std::to_string(kFirstUser) + " to " +
                        std::to_string(kFirstUser + kUserCount - 1) + " is free; see " + kUserLocks);
    }
  }
  std::vector<std::string> reached = facts.needed;
  reached.push_back(settings.worker->executable);
  if (!settings.worker->config.worker_path.empty()) reached.push_back(settings.worker->config.worker_path);
  std::vector<Confinement> choices = confinement_choices(facts, settings.worker->confine);
  // The folders have to fit before it is tried, or they would be what stands in the way.
  if (!choices.empty() && choices.front().kind == ConfinementKind::OtherUser) {
    if (auto fit = fit_state_folder(found.state_folder_, choices.front()); !fit) return fit.error();
    if (auto fit = fit_state_folder(packages, choices.front()); !fit) return fit.error();
  }
  auto outcome = choose_confinement(settings.watcher, choices, reached);
  if (!outcome) {
    Error error = outcome.error();
    for (const std::string& each : refused) error.reason += " Before that: " + each;
    return error;
  }
  found.how_ = outcome->chosen;
  found.gaps_ = confinement_gaps(found.how_);
  const std::vector<std::string> exposed = secret_gaps(found.how_, facts);
  found.gaps_.insert(found.gaps_.begin(), exposed.begin(), exposed.end());
  // Another user's files are closed to it by their permissions.
  const bool has_neighbour = !is_alone && found.how_.kind != ConfinementKind::OtherUser;
  if (has_neighbour) found.gaps_.insert(found.gaps_.begin(), std::string{kNeighbourGap});
  if (auto fit = fit_state_folder(found.state_folder_, found.how_); !fit) return fit.error();
  if (auto fresh = found.fresh_scratch(); !fresh) return fresh.error();
  refused.insert(refused.end(), outcome->refused.begin(), outcome->refused.end());
  tell(found, refused, log);
  for (const std::string& each : exposed) log.warn("a secret can become readable", {{"reason", each}});
  if (has_neighbour) {
    log.warn(
        "another agent of this user runs on this machine, and functions of each can read the other's files: "
        "give each agent a user of its own (User= in its service file)",
        {{"user", std::uint64_t{found.user()}}});
  }
  return found;
}

std::uint32_t WorkerConfinement::user() const {
  return how_.kind == ConfinementKind::OtherUser ? how_.ids.user : own_ids().user;
}

std::optional<std::uint32_t> WorkerConfinement::group() const {
  if (how_.kind != ConfinementKind::OtherUser) return std::nullopt;
  return how_.ids.group;
}

Result<std::string> WorkerConfinement::fresh_scratch() {
  const std::string folder = state_folder_ + std::string{kScratch};
  // First, since it could put things into the new folder, or links into the old one while that is removed.
  if (auto swept = sweep_user(supervisor_, how_); !swept) return swept.error();
  remove_tree(folder);
  if (auto made = make_scratch(folder, how_); !made) return made.error();
  return folder;
}

}  // namespace windlass::agent
