// Our server and our client with peers that we did not write, over TLS; see README.md.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/integration/protocol/adapters/transport_world.h"

namespace windlass::testing {
namespace {

// A program whose output is read on the loop.
class Program final : private ReadinessEvents {
 public:
  Program(EventLoop& loop, std::vector<std::string> arguments) : loop_(loop) {
    int ends[2];
    CHECK(::pipe2(ends, O_CLOEXEC) == 0);
    posix_spawn_file_actions_t actions;
    CHECK(::posix_spawn_file_actions_init(&actions) == 0);
    CHECK(::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO) == 0);
    std::vector<char*> pointers;
    pointers.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    const int failure = ::posix_spawnp(&process_, pointers[0], &actions, nullptr, pointers.data(), environ);
    CHECK(::posix_spawn_file_actions_destroy(&actions) == 0);
    CHECK(::close(ends[1]) == 0);
    EXPECT_EQ(failure, 0) << arguments[0] << " could not be started";
    if (failure != 0) process_ = 0;
    pipe_ = std::make_unique<Readiness>(loop, Socket{ends[0]}, static_cast<ReadinessEvents&>(*this));
    pipe_->wait_readable();
  }
  ~Program() override {
    if (process_ == 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }

  const std::string& output() const { return output_; }
  bool has_ended() const { return ended_; }  // it closed its output
  int exit_code() {
    int status = 0;
    ::waitpid(process_, &status, 0);
    process_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  void on_readable() override {
    char buffer[4096];
    const ssize_t count = ::read(pipe_->fd(), buffer, sizeof buffer);
    loop_.turn_again();
    if (count > 0) output_.append(buffer, static_cast<std::size_t>(count));
    ended_ = count == 0;
    if (!ended_) pipe_->wait_readable();
  }
  void on_writable() override {}

  EventLoop& loop_;
  std::unique_ptr<Readiness> pipe_;
  std::string output_;
  pid_t process_ = 0;
  bool ended_ = false;
};

struct Peer {
  const char* name;
  std::vector<std::string> command;
};

class Interop : public TransportWorld, public ::testing::WithParamInterface<Peer> {
 protected:
  Interop() {
    use_tls();
    server_options.connection.message_bytes_max = limits::kFrameBytesMax;
  }
  std::vector<std::string> command(std::vector<std::string> arguments) const {
    std::vector<std::string> all = GetParam().command;
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
  }
};

TEST_P(Interop, ItsClientIsServedByUs) {
  server_events.echo();
  start_server();
  Program peer{loop,
               command({"client", std::to_string(server->port()), shared_authority().certificate_file()})};
  ASSERT_TRUE(run_until([&] { return peer.has_ended() && !server_events.closed.empty(); })) << peer.output();
  EXPECT_EQ(peer.exit_code(), 0);
  EXPECT_EQ(server_events.closed[0].code, 4000);
  EXPECT_EQ(server_events.closed[0].reason, "done");
  EXPECT_EQ(server_events.closed[0].initiator, CloseInitiator::Peer);
}

TEST_P(Interop, ItsServerServesUs) {
  Program peer{loop, command({"server", shared_server_files().certificate, shared_server_files().key})};
  ASSERT_TRUE(run_until([&] { return peer.output().ends_with('\n') || peer.has_ended(); }));
  ASSERT_EQ(peer.output().find("port "), 0U) << peer.output();
  client_options.address = {"localhost", static_cast<std::uint16_t>(std::stoi(peer.output().substr(5)))};
  start_client();
  client->dial(ConnectionId{1});
  ASSERT_TRUE(run_until([&] { return !client_events.open.empty() || !client_events.closed.empty(); }));
  ASSERT_TRUE(client_events.closed.empty()) << client_events.closed[0].reason;

  WebSocketConnection& connection = *client_events.open.at(ConnectionId{1});
  std::string binary(70'000, '\0');
  for (std::size_t i = 0; i < binary.size(); ++i) binary[i] = static_cast<char>(i % 251);
  const std::string texts[] = {"hello", "gr\u00fc\u00dfe \u2603", ""};
  for (const std::string& text : texts) connection.send(text, MessageKind::Text);
  connection.ping("beat");
  connection.send(binary, MessageKind::Binary);
  ASSERT_TRUE(run_until([&] { return client_events.messages.size() == 4 || !client_events.closed.empty(); }));
  ASSERT_TRUE(client_events.closed.empty()) << client_events.closed[0].reason;
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(client_events.messages[i].text, texts[i]);
  EXPECT_EQ(client_events.messages[3].text, binary);
  EXPECT_EQ(client_events.messages[3].kind, MessageKind::Binary);

  connection.close(4000, "done");
  ASSERT_TRUE(run_until([&] { return peer.has_ended() && client->connections() == 0; })) << peer.output();
  EXPECT_NE(peer.output().find("\nclosed 4000 done\n"), std::string::npos) << peer.output();
  EXPECT_EQ(peer.exit_code(), 0);
}

const std::string kFolder = WINDLASS_INTEROP_FOLDER;

INSTANTIATE_TEST_SUITE_P(Transport, Interop,
                         ::testing::Values(Peer{"PythonWebsockets",
                                                {WINDLASS_PYTHON, kFolder + "/python_peer.py"}},
                                           Peer{"NodeWs", {"node", kFolder + "/node_peer.js"}},
                                           Peer{"Beast", {WINDLASS_BEAST_PEER}},
                                           Peer{"Libwebsockets", {WINDLASS_LIBWEBSOCKETS_PEER}}),
                         [](const auto& peer) { return peer.param.name; });

}  // namespace
}  // namespace windlass::testing
