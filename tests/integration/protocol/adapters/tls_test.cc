// Who is believed: authorities, names, dates, client certificates, and certificates changed while running.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "protocol/adapters/hello_guard.h"
#include "tests/integration/protocol/adapters/transport_world.h"
#include "tests/support/raw_peer.h"

namespace windlass::testing {
namespace {

class Tls : public TransportWorld {
 protected:
  // The client's report of a dial that must fail.
  std::string failure() {
    start();
    EXPECT_TRUE(run_until_client_closed());
    EXPECT_TRUE(server_events.open.empty());
    EXPECT_TRUE(client_events.open.empty());
    return client_events.closed.empty() ? "" : client_events.closed[0].reason;
  }
  static TlsServerOptions server_with(const IssuedFiles& files) {
    TlsServerOptions options;
    options.identity = {files.certificate, files.key, true};
    return options;
  }
  static TlsServerOptions asking(ClientCertificates policy) {
    TlsServerOptions options;
    options.client_certificates = policy;
    options.client_authority_file = shared_authority().certificate_file();
    return options;
  }
  static TlsClientOptions client_with(const IssuedFiles& files) {
    TlsClientOptions options;
    options.identity = TlsIdentity{files.certificate, files.key, true};
    return options;
  }
};

// The beginning of a first record whose message says that it has this many bytes.
std::string hello_of(std::size_t bytes, const std::string& record_bytes = {"\x02\x00", 2}) {
  const auto byte = [](std::size_t value) { return static_cast<char>(value & 0xFFU); };
  return "\x16\x03\x01" + record_bytes + "\x01" + byte(bytes >> 16U) + byte(bytes >> 8U) + byte(bytes);
}

TEST(HelloGuard, LetsAClientHelloOfASaneSizePassInAnyPieces) {
  for (const std::string& head :
       {hello_of(512), hello_of(limits::kHelloBytesMax), std::string{"GET / HTTP"}}) {
    HelloGuard guard;
    for (const char byte : head) EXPECT_TRUE(guard.handle_bytes({&byte, 1}));
    EXPECT_TRUE(guard.is_done());
    HelloGuard at_once;
    EXPECT_TRUE(at_once.handle_bytes(head + "and more"));
  }
}

TEST(HelloGuard, RefusesAClientHelloThatClaimsToBeLongOrDoesNotSay) {
  for (const std::string& head :
       {hello_of(limits::kHelloBytesMax + 1), hello_of(131'072), hello_of(1, {"\x00\x03", 2})}) {
    HelloGuard guard;
    EXPECT_TRUE(guard.handle_bytes(std::span{head}.first(8)));
    EXPECT_FALSE(guard.handle_bytes(std::span{head}.subspan(8)));
  }
}

TEST_F(Tls, AServerRefusesAClientHelloThatClaimsToBeLong) {
  use_tls();
  start_server();
  RawPeer peer{loop, server->port()};
  peer.send(hello_of(131'072));
  EXPECT_TRUE(run_until([&] { return peer.ended || peer.failed; }));
  EXPECT_EQ(server->counters().failed(OpeningFailure::Tls), 1U);
}

TEST_F(Tls, AServerOfAnUnknownAuthorityIsNotBelieved) {
  TestAuthority other{"Other Authority"};
  TlsClientOptions options;
  options.authority_file = other.certificate_file();
  use_tls({}, options);
  EXPECT_EQ(failure(),
            "the TLS handshake failed: certificate verify failed: unable to get local issuer certificate");
}

TEST_F(Tls, AnExpiredServerCertificateIsNotBelieved) {
  use_tls(server_with(
      shared_authority().issue("expired", {.valid_from_seconds = -7200, .valid_until_seconds = -60})));
  EXPECT_EQ(failure(), "the TLS handshake failed: certificate verify failed: certificate has expired");
}

TEST_F(Tls, ACertificateForAnotherNameIsNotBelieved) {
  use_tls(server_with(shared_authority().issue(
      "elsewhere", {.common_name = "elsewhere.example", .alternative_names = "DNS:elsewhere.example"})));
  EXPECT_EQ(failure(), "the TLS handshake failed: certificate verify failed: IP address mismatch");
}

TEST_F(Tls, AHostNameIsCheckedAsAName) {
  use_tls(server_with(shared_authority().issue("named", {.alternative_names = "DNS:localhost"})));
  client_options.address.host = "localhost";
  open();
}

TEST_F(Tls, AMissingClientCertificateIsRefusedWhereOneIsRequired) {
  use_tls(asking(ClientCertificates::Required));
  const std::string reason = failure();
  EXPECT_NE(reason.find("certificate required"), std::string::npos) << reason;
}

TEST_F(Tls, AClientCertificateOfAnotherAuthorityIsRefused) {
  TestAuthority other{"Other Authority"};
  use_tls(asking(ClientCertificates::Required), client_with(other.issue("worker")));
  const std::string reason = failure();
  EXPECT_NE(reason.find("alert unknown ca"), std::string::npos) << reason;
}

TEST_F(Tls, AnExpiredClientCertificateIsRefusedEvenWhereNoneIsRequired) {
  use_tls(asking(ClientCertificates::Optional),
          client_with(
              shared_authority().issue("late", {.valid_from_seconds = -7200, .valid_until_seconds = -60})));
  const std::string reason = failure();
  EXPECT_NE(reason.find("alert certificate expired"), std::string::npos) << reason;
}

TEST_F(Tls, AClientWithoutCertificateConnectsWhereItIsOptional) {
  use_tls(asking(ClientCertificates::Optional));
  open();
  EXPECT_EQ(server_events.peers[0].certificate_fingerprint, "");
}

TEST_F(Tls, TheServerLearnsWhatTheClientsCertificateSays) {
  const auto files = shared_authority().issue(
      "worker-1", {.common_name = "worker-1",
                   .alternative_names = "DNS:worker-1.example,URI:windlass://acme/worker-1,IP:192.0.2.7"});
  use_tls(asking(ClientCertificates::Required), client_with(files));
  open();
  const PeerInfo& peer = server_events.peers[0];
  EXPECT_EQ(peer.certificate_subject, "CN=worker-1");
  EXPECT_EQ(peer.certificate_fingerprint.size(), 64U);
  EXPECT_EQ(
      peer.certificate_sans,
      (std::vector<std::string>{"DNS:worker-1.example", "URI:windlass://acme/worker-1", "IP:192.0.2.7"}));
  EXPECT_EQ(peer.address.find("127.0.0.1:"), 0U);
}

TEST_F(Tls, ConnectsWhereOnlyVersionOnePointThreeIsAllowed) {
  TlsServerOptions modern;
  modern.version_min = TlsVersion::Tls13;
  use_tls(modern);
  open();
}

TEST_F(Tls, AReloadServesTheNewCertificateAndKeepsOpenConnections) {
  const auto files = shared_authority().issue("rotating");
  use_tls(server_with(files));
  server_events.echo();
  WebSocketConnection& first = open();
  const std::string before = client_events.peers[0].certificate_fingerprint;

  static_cast<void>(shared_authority().issue("rotating"));  // the same files, another key
  ASSERT_TRUE(server_tls->reload());
  client->dial(ConnectionId{2});
  ASSERT_TRUE(run_until([&] { return client_events.open.size() == 2; }));
  EXPECT_NE(client_events.peers[1].certificate_fingerprint, before);
  first.send("still here", MessageKind::Text);
  ASSERT_TRUE(run_until([&] { return client_events.messages.size() == 1; }));
}

TEST_F(Tls, AFailedReloadNamesTheFileAndChangesNothing) {
  const auto files = shared_authority().issue("broken");
  use_tls(server_with(files));
  std::ofstream{files.certificate} << "not a certificate";
  const auto reloaded = server_tls->reload();
  ASSERT_FALSE(reloaded);
  EXPECT_EQ(reloaded.error().reason.find("certificate file '" + files.certificate + "' holds no usable PEM"),
            0U)
      << reloaded.error().reason;
  open();
}

TEST_F(Tls, AnExpiredCertificateOfOurOwnIsRefusedAtTheStartAndByAReload) {
  const LeafOptions old{.valid_from_seconds = -7200, .valid_until_seconds = -60};
  const auto expired = shared_authority().issue("ours-expired", old);
  const auto made = TlsContext::server({{expired.certificate, expired.key}});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().reason.find("certificate file '" + expired.certificate + "' expired on 20"), 0U)
      << made.error().reason;

  const auto files = shared_authority().issue("ours-aging");
  const auto context = TlsContext::server({{files.certificate, files.key}});
  ASSERT_TRUE(context);
  const auto expires = (*context)->expires();
  static_cast<void>(shared_authority().issue("ours-aging", old));
  EXPECT_FALSE((*context)->reload());
  ASSERT_TRUE(expires);
  EXPECT_EQ((*context)->expires(), expires);
}

TEST_F(Tls, AKeyThatEveryUserCanReadIsRefused) {
  namespace fs = std::filesystem;
  const auto files = shared_authority().issue("readable");
  fs::permissions(files.key, fs::perms::others_read, fs::perm_options::add);
  EXPECT_TRUE(TlsContext::server({{files.certificate, files.key}})) << "its folder is private";
  const fs::path folder = shared_authority().folder().path();
  const fs::perms before = fs::status(folder).permissions();
  fs::permissions(folder, fs::perms::others_exec, fs::perm_options::add);
  const auto made = TlsContext::server({{files.certificate, files.key}});
  fs::permissions(folder, before);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().reason,
            files.key + ": every user of this machine can read this secret; run chmod o-rwx " + files.key);
}

TEST_F(Tls, BadFilesAreNamedInOneSentence) {
  const auto good = shared_authority().issue("good");
  const auto other = shared_authority().issue("other");
  const auto reason = [](const TlsIdentity& identity) {
    const auto made = TlsContext::server({identity});
    return made ? std::string{"made"} : made.error().reason;
  };
  const std::string absent = shared_authority().folder().file("absent.pem");
  EXPECT_EQ(reason({absent, good.key}),
            "certificate file '" + absent + "' cannot be read: No such file or directory");
  EXPECT_EQ(reason({good.certificate, absent}),
            "key file '" + absent + "' cannot be read: No such file or directory");
  EXPECT_EQ(reason({good.certificate, other.key}),
            "key file '" + other.key + "' does not belong to the certificate in '" + good.certificate + "'");
  EXPECT_EQ(reason({good.certificate, good.certificate})
                .find("key file '" + good.certificate + "' holds no usable"),
            0U);
  EXPECT_EQ(reason({"", good.key}), "no certificate file is configured; name one");
  TlsServerOptions asks{{good.certificate, good.key}, ClientCertificates::Required};
  const auto made = TlsContext::server(asks);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().reason, "no authority file is configured; name one");
}

}  // namespace
}  // namespace windlass::testing
