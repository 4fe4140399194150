// Both ends of a stream, over the loopback: what ends one while it is open ends nothing else.
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "protocol/function_rpc/peek.h"
#include "worker-agent/adapters/function_rpc_client.h"
#include "worker-agent/adapters/function_rpc_server.h"

namespace windlass::agent {
namespace {

using function_rpc::Content;

constexpr std::chrono::seconds kPatience{20};  // a machine may be busy; nothing here takes long

// Wakes whoever waits for something to have come.
class Bell {
 public:
  std::function<void()> ringer() {
    return [this] {
      const std::lock_guard lock{mutex_};
      is_rung_ = true;
      changed_.notify_all();
    };
  }
  template <class Condition>
  bool wait(Condition condition) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    std::unique_lock lock{mutex_};
    for (;;) {
      is_rung_ = false;
      lock.unlock();
      if (condition()) return true;
      lock.lock();
      if (!changed_.wait_until(lock, until, [this] { return is_rung_; })) return false;
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_rung_ = false;
};

std::string start_stream(std::string_view worker) {
  std::string body;
  function_rpc::append_bytes(body, 2, worker);
  return function_rpc::compose("q", Content::StartStream, body);
}

class FunctionRpcTest : public ::testing::Test {
 protected:
  FunctionRpcTest() { server = *FunctionRpcServer::listen({}, server_bell.ringer()); }
  void dial() {
    client = *FunctionRpcClient::create({.host = "127.0.0.1", .port = server->port(), .tls = std::nullopt},
                                        client_bell.ringer());
    client->dial();
  }
  void open(const std::string& worker) {
    server->expect(worker);
    dial();
    ASSERT_TRUE(client_bell.wait([&] { return client->poll().is_open; }));
    ASSERT_TRUE(client->send(start_stream(worker)));
    client->flush();
    ASSERT_TRUE(server_bell.wait([&] { return server->poll().worker_id == worker; }));
  }
  Bell server_bell;
  Bell client_bell;
  std::unique_ptr<FunctionRpcServer> server;
  std::unique_ptr<FunctionRpcClient> client;
};

constexpr int kRounds = 40;  // an order that depends on threads shows itself in some of them

TEST_F(FunctionRpcTest, AClientMayEndWhileItsStreamIsOpen) {
  for (int round = 0; round < kRounds; ++round) {
    open("w." + std::to_string(round));
    client.reset();
    ASSERT_TRUE(server_bell.wait([&] { return server->poll().is_over; }));
  }
}

TEST_F(FunctionRpcTest, AClientMayEndWhileItsStreamOpens) {
  for (int round = 0; round < kRounds; ++round) {
    dial();
    client.reset();
  }
}

TEST_F(FunctionRpcTest, AServerMayEndWhileItsStreamIsOpen) {
  for (int round = 0; round < kRounds; ++round) {
    open("w");
    server.reset();
    ASSERT_TRUE(client_bell.wait([&] { return client->poll().over.has_value(); }));
    server = *FunctionRpcServer::listen({}, server_bell.ringer());
  }
}

TEST_F(FunctionRpcTest, AServerMayEndWhileStrangersKeepSilent) {
  for (int round = 0; round < kRounds; ++round) {
    dial();
    ASSERT_TRUE(client_bell.wait([&] { return client->poll().is_open; }));
    server.reset();
    ASSERT_TRUE(client_bell.wait([&] { return client->poll().over.has_value(); }));
    server = *FunctionRpcServer::listen({}, server_bell.ringer());
  }
}

}  // namespace
}  // namespace windlass::agent
