// A real windlass-agent with a folder of its own.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace windlass::testing {

class AgentProcess final {
 public:
  AgentProcess() {
    std::string name = ::testing::TempDir() + "windlass_agent_XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~AgentProcess() {
    if (is_running()) end(SIGKILL);
    std::filesystem::remove_all(folder_);
  }
  AgentProcess(const AgentProcess&) = delete;
  AgentProcess& operator=(const AgentProcess&) = delete;

  const std::string& folder() const { return folder_; }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void write(const std::string& name, const std::string& text) const { std::ofstream{path(name)} << text; }
  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream{path(name)}.rdbuf();
    return text.str();
  }

  // Settings every test needs, before its own.
  void configure(const std::string& url, const std::string& more) const {
    write("token", "the-token-of-this-test\n");
    write("agent.toml", "[scheduler]\nurl = \"" + url + "\"\n[worker]\ntenant = \"acme\"\nstate_folder = \"" +
                            path("var") + "\"\n[auth]\ntoken_file = \"" + path("token") +
                            "\"\n[session]\nbackoff_first = \"20ms\"\nbackoff_cap = \"200ms\"\n" +
                            "[load]\ninterval = \"1s\"\n[log]\nlevel = \"debug\"\nfile = \"" + path("log") +
                            "\"\n" + more);
  }

  void start(std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.begin(), {WINDLASS_AGENT, "--config", path("agent.toml")});
    std::vector<char*> pointers;
    pointers.reserve(arguments.size() + 1);
    for (std::string& each : arguments) pointers.push_back(each.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, path("out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    ASSERT_EQ(::posix_spawn(&pid_, WINDLASS_AGENT, &actions, nullptr, pointers.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  bool is_running() const { return pid_ != 0; }
  void signal(int number) const { ::kill(pid_, number); }
  // True once it is gone; does not wait.
  bool has_ended() {
    if (pid_ != 0 && ::waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = 0;
    return pid_ == 0;
  }
  int exit_code() const { return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1; }
  void end(int number) {
    signal(number);
    wait();
  }
  int wait() {
    if (pid_ != 0) ::waitpid(pid_, &status_, 0);
    pid_ = 0;
    return exit_code();
  }

 private:
  std::string folder_;
  pid_t pid_ = 0;
  int status_ = 0;
};

// One GET on the loopback, whole answer.
inline std::string http_get(std::uint16_t port, const std::string& path) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    static_cast<void>(!::write(fd, request.data(), request.size()));
    std::array<char, 4096> buffer{};
    for (ssize_t count = ::read(fd, buffer.data(), buffer.size()); count > 0;
         count = ::read(fd, buffer.data(), buffer.size())) {
      answer.append(buffer.data(), static_cast<std::size_t>(count));
    }
  }
  ::close(fd);
  return answer;
}

}  // namespace windlass::testing
