#include "worker-agent/adapters/agent_mark.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

namespace windlass::agent {
namespace {

// With one name, an agent that came second would hold none, and nobody would notice it once the first ended.
constexpr int kNames = 8;
// Copies of the descriptor in processes that an agent was about to start outlive it for a moment.
constexpr int kAttempts = 6;
constexpr std::chrono::milliseconds kPause{50};

// False: somebody has it.
bool take(const std::string& name, FileDescriptor& into) {
  FileDescriptor socket{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // behind a zero: no file
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
    return errno != EADDRINUSE;
  if (!into.is_open()) into = std::move(socket);
  return true;
}

bool is_free(const std::string& name, FileDescriptor& into) {
  for (int attempt = 1; !take(name, into); ++attempt) {
    if (attempt == kAttempts) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

}  // namespace

AgentMark mark_agent(std::uint32_t user) {
  AgentMark mark;
  for (int i = 0; i < kNames; ++i) {
    const std::string name = "windlass-agent/" + std::to_string(user) + "/" + std::to_string(i);
    // Who knows already does not wait to see others go.
    const bool is_this_free = mark.is_alone ? is_free(name, mark.name) : take(name, mark.name);
    if (!is_this_free) mark.is_alone = false;
  }
  return mark;
}

}  // namespace windlass::agent
