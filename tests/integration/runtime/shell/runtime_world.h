// A whole runtime in this process, on free ports, and what a test asks it with.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "protocol/crypto/digest.h"
#include "protocol/crypto/text_encoding.h"
#include "runtime/shell/runtime.h"

namespace windlass::testing {

struct HttpSaid {
  int status = 0;
  std::string head;
  std::string body;
};

// One request on a connection of its own, whose answer is read when the test wants it.
class HttpCall final {
 public:
  HttpCall(std::uint16_t port, const std::string& method, const std::string& target,
           const std::string& body = {}, const std::string& headers = {})
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{20, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return;
    const std::string request = method + " " + target +
                                " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers +
                                "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    for (std::size_t at = 0; at < request.size();) {
      const ssize_t sent = ::send(socket_, request.data() + at, request.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) break;
      at += static_cast<std::size_t>(sent);
    }
  }
  ~HttpCall() { ::close(socket_); }
  HttpCall(const HttpCall&) = delete;
  HttpCall& operator=(const HttpCall&) = delete;

  // Status 0: nothing came.
  HttpSaid read() const {
    std::string all;
    std::string piece(64 * 1024, '\0');
    for (ssize_t got = 0; (got = ::recv(socket_, piece.data(), piece.size(), 0)) > 0;) {
      all.append(piece, 0, static_cast<std::size_t>(got));
    }
    HttpSaid said;
    const std::size_t end = all.find("\r\n\r\n");
    if (all.size() > 12 && end != std::string::npos) {
      said.status = std::stoi(all.substr(9, 3));
      said.head = all.substr(0, end);
      said.body = all.substr(end + 4);
    }
    return said;
  }

 private:
  int socket_;
};

inline HttpSaid ask_http(std::uint16_t port, const std::string& method, const std::string& target,
                         const std::string& body = {}, const std::string& headers = {}) {
  return HttpCall{port, method, target, body, headers}.read();
}

class RuntimeTest : public ::testing::Test {
 protected:
  static constexpr const char* kToken = "the-token-of-this-test";

  RuntimeTest() {
    std::string name = ::testing::TempDir() + "runtime-XXXXXX";
    folder = ::mkdtemp(name.data());
    write("agents.toml", "[[token]]\ntenant = \"acme\"\nsha256 = \"" + hex_encode(view_of(sha256(kToken))) +
                             "\"\nname = \"test\"\n");
    config.id = "runtime-1";
    config.credentials_file = folder + "/agents.toml";
    config.http = ListenAddress{};
    config.grpc = ListenAddress{};
    config.grants = {{"", "*", "*"}};
    config.grpc_users = {::geteuid()};
    config.core.memory_critical = 1.0;  // the machine's memory is nobody's business here
    config.core.memory_elevated = 1.0;
  }
  ~RuntimeTest() override {
    if (runtime) {
      runtime->stop();
      runtime->stop();
    }
    if (thread.joinable()) thread.join();
    runtime.reset();
    std::filesystem::remove_all(folder);
  }

  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path{folder + "/" + name}.parent_path());
    std::ofstream{folder + "/" + name} << text;
  }
  void start() {
    log = *JsonLog::open({.level = windlass::LogLevel::Debug, .file = folder + "/log"});
    auto made = runtime::Runtime::create(config, *log);
    ASSERT_TRUE(made) << made.error().reason;
    runtime = *std::move(made);
    http = runtime->http_port();
    admin = runtime->admin_port();
    thread = std::jthread{[this] { runtime->run(); }};
  }
  // Looks again until it holds, or for too long.
  static bool eventually(const std::function<bool()>& holds) {
    for (int i = 0; i < 2000; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    return false;
  }
  std::string logged() const {
    std::ifstream file{folder + "/log"};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  bool logs(const std::string& text) const {
    return eventually([&] { return logged().find(text) != std::string::npos; });
  }
  void TearDown() override {
    if (HasFailure()) {
      const std::string all = logged();
      std::fputs(all.substr(all.size() - std::min<std::size_t>(all.size(), 6000)).c_str(), stderr);
    }
  }

  std::string folder;
  runtime::RuntimeConfig config;
  std::unique_ptr<JsonLog> log;
  std::unique_ptr<runtime::Runtime> runtime;
  std::uint16_t http = 0;
  std::uint16_t admin = 0;
  std::jthread thread;
};

}  // namespace windlass::testing
