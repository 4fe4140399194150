// A whole service in this process, with a store of the test's.
#include "scheduler/shell/service.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "scheduler/adapters/memory_store.h"
#include "tests/support/certificates.h"

namespace windlass::testing {
namespace {

class ServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream{folder.file("credentials.toml")} << "";
    config.id = "test";
    config.path = "/ws/worker";
    config.credentials_file = folder.file("credentials.toml");
    config.admin_access.token = "a-secret-of-this-test";
    log = *JsonLog::open({.level = LogLevel::Info, .file = folder.file("log")});
  }
  std::string log_text() const {
    std::stringstream text;
    text << std::ifstream{folder.file("log")}.rdbuf();
    return text.str();
  }

  TemporaryFolder folder;
  ServiceConfig config;
  std::unique_ptr<JsonLog> log;
};

// Answers as a store does whose version another process has moved.
class TakenStore final : public StateStore {
 public:
  Result<Snapshot> load() override { return Snapshot{}; }
  Result<Version> commit(const WriteBatch&, Version) override {
    return Error{ErrorCode::StoreStale, Blame::Local, "the store is at version 7, not 0"};
  }
};

TEST_F(ServiceTest, StopsByItselfWhenItsStoreIsAnothers) {
  auto service = Service::create(config, *log, std::make_unique<TakenStore>());
  ASSERT_TRUE(service) << service.error().reason;
  // A revocation must be durable before it is answered, so it is the first thing that wants a commit.
  auto socket = begin_connect(*numeric_address("127.0.0.1", (*service)->admin_port()));
  ASSERT_TRUE(socket);
  std::thread client{[&] {
    const std::string request =
        "POST /v1/workers/acme/i-1/revoke HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " +
        config.admin_access.token + "\r\nContent-Length: 0\r\n\r\n";
    while (write_some(socket->fd(), request).state == IoState::WouldBlock) std::this_thread::yield();
  }};
  EXPECT_NE((*service)->run(), 0);
  client.join();
  EXPECT_NE(log_text().find("another scheduler writes to this store"), std::string::npos) << log_text();
  EXPECT_NE(log_text().find("E.STORE.STALE"), std::string::npos) << log_text();
}

TEST_F(ServiceTest, EndsWithZeroWhenToldToStop) {
  auto service = Service::create(config, *log, std::make_unique<MemoryStore>());
  ASSERT_TRUE(service) << service.error().reason;
  (*service)->stop();
  EXPECT_EQ((*service)->run(), 0);
}

}  // namespace
}  // namespace windlass::testing
