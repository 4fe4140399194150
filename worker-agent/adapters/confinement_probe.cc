#include "worker-agent/adapters/confinement_probe.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <pwd.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "worker-agent/adapters/files.h"

namespace windlass::agent {
namespace {

std::optional<std::uint32_t> id_in(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

struct Answer {
  bool is_good = false;
  std::string said;  // why not; or what is missing all the same
};

Answer ask(const std::string& supervisor, const std::string& mode, const Confinement& confinement,
           const std::vector<std::string>& needed) {
  std::vector<std::string> command{supervisor, mode};
  const auto options = to_arguments(confinement);
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), needed.begin(), needed.end());
  std::vector<char*> arguments;
  for (std::string& each : command) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {false, std::strerror(errno)};
  const FileDescriptor read{ends[0]};
  FileDescriptor write{ends[1]};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, write.get(), 2);
  char* no_environment = nullptr;
  pid_t child = 0;
  const int error =
      ::posix_spawn(&child, supervisor.c_str(), &actions, nullptr, arguments.data(), &no_environment);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return {false, supervisor + " cannot be started: " + std::strerror(error)};
  write = FileDescriptor{};
  const auto said = read_all(read.get(), "windlass-run's answer");
  int status = 0;
  ::waitpid(child, &status, 0);
  std::string text = said ? *said : std::string{};
  while (text.ends_with('\n')) text.pop_back();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {true, text};
  return {false, text.empty() ? "windlass-run gave no reason" : text};
}

}  // namespace

Result<UserIds> find_user(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (const auto user = id_in(std::string_view{text}.substr(0, colon))) {
    const auto group = colon == std::string::npos ? user : id_in(std::string_view{text}.substr(colon + 1));
    if (group) return UserIds{*user, *group};
  }
  struct passwd entry {};
  struct passwd* found = nullptr;
  std::array<char, 16 * 1024> buffer;
  if (::getpwnam_r(text.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return Error{
        ErrorCode::StoreInvalid, Blame::Local,
        "there is no user \"" + text + "\" on this machine; make one, or give its numbers as 1234:1234"};
  }
  return UserIds{entry.pw_uid, entry.pw_gid};
}

UserIds own_ids() {
  return {::geteuid(), ::getegid()};
}

bool may_switch_user() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  if (::syscall(SYS_capget, &header, data.data()) != 0) return ::geteuid() == 0;
  const auto has = [&](unsigned capability) { return (data[0].effective >> capability & 1U) != 0; };
  // Files are handed to the other user and removed again, and its processes are ended.
  return has(CAP_SETUID) && has(CAP_SETGID) && has(CAP_CHOWN) && has(CAP_KILL) && has(CAP_DAC_OVERRIDE) &&
         has(CAP_FOWNER);
}

std::string real_path(const std::string& path) {
  std::error_code error;
  const auto whole = std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  std::string text = error ? path : whole.string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

std::vector<std::string> closed_folders(const std::vector<std::string>& paths) {
  std::vector<std::string> closed;
  for (const std::string& path : paths) {
    for (std::size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
      const std::string folder = path.substr(0, at);
      struct stat facts {};
      const bool is_closed =
          ::stat(folder.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && (facts.st_mode & S_IXOTH) == 0;
      if (is_closed && std::ranges::find(closed, folder) == closed.end()) closed.push_back(folder);
      if (is_closed || at == std::string::npos) break;
    }
  }
  return closed;
}

Result<ConfinementOutcome> choose_confinement(const std::string& supervisor,
                                              const std::vector<Confinement>& choices,
                                              const std::vector<std::string>& needed) {
  ConfinementOutcome outcome;
  for (const Confinement& each : choices) {
    Answer answer = ask(supervisor, "check", each, needed);
    if (answer.is_good) {
      outcome.chosen = without_missing(each, answer.said);
      return outcome;
    }
    outcome.refused.push_back(std::move(answer.said));
  }
  return Error{ErrorCode::StoreFailed, Blame::Local,
               "the language worker cannot be confined: " +
                   (outcome.refused.empty() ? "the agent may neither switch users nor make namespaces"
                                            : outcome.refused.back()) +
                   "; run the agent as root or with language_worker.user, or set language_worker.confine = "
                   "\"best\"."};
}

Result<Done> sweep_user(const std::string& supervisor, const Confinement& confinement) {
  if (confinement.kind != ConfinementKind::OtherUser || !confinement.is_user_exclusive) return Done{};
  if (const Answer answer = ask(supervisor, "sweep", confinement, {}); !answer.is_good) {
    return Error{ErrorCode::StoreFailed, Blame::Local,
                 "what an earlier language worker left behind cannot be ended: " + answer.said};
  }
  return Done{};
}

void shut_own_memory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}

}  // namespace windlass::agent
