// gRPC over real TLS: workers show certificates, and the server's own may change while it runs.
#include <filesystem>

#include "tests/integration/runtime/shell/runtime_world.h"
#include "tests/integration/runtime/shell/scripted_stream.h"
#include "tests/support/certificates.h"

namespace windlass::testing {
namespace {

std::string text_of_file(const std::string& path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, {}};
}

class GrpcTlsTest : public RuntimeTest {
 protected:
  GrpcTlsTest() {
    const IssuedFiles served = authority.issue("server");
    write("grpc.pem", text_of_file(served.certificate));
    write("grpc.key", text_of_file(served.key));
    std::filesystem::permissions(folder + "/grpc.key",
                                 std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    write("authority.pem", text_of_file(authority.certificate_file()));
    config.grpc_tls = TlsServerOptions{
        .identity = {.certificate_file = folder + "/grpc.pem", .key_file = folder + "/grpc.key"},
        .client_authority_file = folder + "/authority.pem"};
    config.applications.push_back({.version = {{"shop", "m1"}, "c1"},
                                   .directory = folder + "/app",
                                   .language = "test",
                                   .environment = {}});
    config.grpc_application = "shop";
    std::filesystem::create_directories(folder + "/app");
    std::string entries;
    for (const std::string name : {"w-1", "w-2"}) {
      entries += "[[certificate]]\ntenant = \"acme\"\nsan = \"DNS:" + name + ".example\"\ninstance = \"" +
                 name + "\"\napplication = \"shop\"\n";
    }
    entries +=
        "[[certificate]]\ntenant = \"acme\"\nsan = \"DNS:agent.example\"\ninstance = \"i-1\"\n" +
        std::string{"role = \"agent\"\n[[certificate]]\ntenant = \"acme\"\nsan = \"DNS:loose.example\"\n"};
    write("agents.toml", entries);
  }
  // Of whom the credentials file has an entry.
  IssuedFiles certificate_of(const std::string& name) {
    return authority.issue(name, {.alternative_names = "DNS:" + name + ".example"});
  }

  static std::shared_ptr<grpc::ChannelCredentials> trusting(const TestAuthority& server,
                                                            const std::optional<IssuedFiles>& own) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = text_of_file(server.certificate_file());
    if (own) {
      options.pem_private_key = text_of_file(own->key);
      options.pem_cert_chain = text_of_file(own->certificate);
    }
    return grpc::SslCredentials(options);
  }
  std::unique_ptr<ScriptedStream> dial(const std::string& worker,
                                       const std::shared_ptr<grpc::ChannelCredentials>& credentials) const {
    return std::make_unique<ScriptedStream>(runtime->grpc_port(), WorkerScript{}.start(worker), credentials);
  }

  TestAuthority authority;
  TestAuthority other{"Another Authority"};
};

TEST_F(GrpcTlsTest, AWorkerWithACertificateServes) {
  start();
  const auto worker = dial("w-1", trusting(authority, certificate_of("w-1")));
  ASSERT_TRUE(logs("a worker is ready"));
  EXPECT_EQ(ask_http(http, "GET", "/api/hello/world").body, "hello world");
}

TEST_F(GrpcTlsTest, AWorkerWithoutACertificateOrWithAForeignOneIsRefused) {
  start();
  EXPECT_FALSE(dial("w-1", trusting(authority, std::nullopt))->wait_for_end().ok());
  EXPECT_FALSE(dial("w-2", trusting(authority, other.issue("worker")))->wait_for_end().ok());
  EXPECT_FALSE(dial("w-3", grpc::InsecureChannelCredentials())->wait_for_end().ok());
  EXPECT_EQ(logged().find("a worker connected"), std::string::npos);
}

TEST_F(GrpcTlsTest, ACertificateIsGoodForItsOwnWorkerOnly) {
  start();
  const auto status = dial("w-1", trusting(authority, authority.issue("worker")))->wait_for_end();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << "our authority's, and in no entry";
  EXPECT_FALSE(dial("w-1", trusting(authority, certificate_of("w-2")))->wait_for_end().ok())
      << "another's id";
  EXPECT_FALSE(dial("w-3", trusting(authority, certificate_of("loose")))->wait_for_end().ok())
      << "bound to none";
  EXPECT_EQ(logged().find("a worker connected"), std::string::npos);
  EXPECT_TRUE(logs("a connection was refused"));
}

TEST_F(GrpcTlsTest, WhoSaysThatItIsAnAgentNeedsTheCertificateOfOne) {
  start();
  const auto dial_as_agent = [&](const std::string& name, const std::string& worker) {
    return std::make_unique<ScriptedStream>(runtime->grpc_port(), WorkerScript{}.start(worker),
                                            trusting(authority, certificate_of(name)),
                                            ScriptedStream::Metadata{{"windlass-agent", "1"}});
  };
  EXPECT_EQ(dial_as_agent("w-1", "w-1")->wait_for_end().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_FALSE(dial_as_agent("agent", "i-2.1")->wait_for_end().ok()) << "another agent's worker";
  const auto agent = dial_as_agent("agent", "i-1.1");
  EXPECT_TRUE(logs("a worker is initialized"));
}

TEST_F(GrpcTlsTest, ANewCertificateIsShownWithoutARestart) {
  start();
  const auto before = dial("w-1", trusting(authority, certificate_of("w-1")));
  ASSERT_TRUE(logs("a worker is ready"));
  const IssuedFiles renewed = other.issue("server");
  write("grpc.key", text_of_file(renewed.key));
  write("grpc.pem", text_of_file(renewed.certificate));
  const auto credentials = trusting(other, certificate_of("w-2"));
  std::unique_ptr<ScriptedStream> worker;
  EXPECT_TRUE(eventually([&] {
    worker = dial("w-2", credentials);
    const auto is_here = [&] { return logged().find(R"("worker":"w-2")") != std::string::npos; };
    return eventually([&] { return worker->is_over() || is_here(); }) && is_here();
  }));
  EXPECT_EQ(ask_http(http, "GET", "/api/hello/world").status, 200) << "and the first goes on";
}

}  // namespace
}  // namespace windlass::testing
