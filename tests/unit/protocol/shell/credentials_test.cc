// Who is admitted, as the credentials say; reading them from a file is the integration tests' matter.
#include "protocol/shell/credentials.h"

#include <gtest/gtest.h>

namespace windlass {
namespace {

constexpr WallTime kNow{milliseconds{1'800'000'000'000}};

class Admitting : public ::testing::Test {
 protected:
  Admitting() {
    peer.certificate_fingerprint = "f1";
    peer.certificate_sans = {"DNS:w1.example"};
    credentials.tokens.push_back({"acme", sha256("good"), "", {}, {}});
    credentials.tokens.push_back({"acme", sha256("bound"), "", "i-2", {}});
    credentials.tokens.push_back({"acme", sha256("old"), "", {}, kNow});
    credentials.certificates.push_back({"acme", "", "DNS:w1.example", "i-1"});
    credentials.certificates.push_back({"strict", "f1", "", {}});
    credentials.tenants["strict"].certificate_required = true;
  }

  std::string verdict(std::string_view tenant, const Handshake& handshake, const PeerFacts& shown) const {
    return text(credentials.admit({handshake, tenant, "i-1", Role::Worker, shown}, kNow));
  }
  std::string verdict_on_token(std::string_view token, std::string_view tenant = "acme") const {
    Handshake handshake;
    handshake.token = token;
    return verdict(tenant, handshake, {});
  }
  std::string verdict_on_resume(std::string_view tenant, const PeerFacts& shown) const {
    return text(credentials.admit_resume({tenant, "i-1", shown}));
  }
  static std::string text(const Result<Done>& result) {
    return result ? "" : std::string{to_string(result.error().code)};
  }

  Credentials credentials;
  PeerFacts peer;  // of a connection with a certificate
};

TEST_F(Admitting, ATokenIsGoodForItsTenantItsWorkerAndItsTime) {
  EXPECT_EQ(verdict_on_token("good"), "");
  EXPECT_EQ(verdict_on_token("good", "globex"), "E.SESSION.TENANT_MISMATCH");
  EXPECT_EQ(verdict_on_token("bound"), "E.SESSION.DENIED");
  EXPECT_EQ(verdict_on_token("old"), "E.AUTH.INVALID_TOKEN");
  EXPECT_EQ(verdict_on_token("goo"), "E.AUTH.INVALID_TOKEN");
  EXPECT_EQ(verdict_on_token(""), "E.AUTH.MISSING_TOKEN");
}

TEST_F(Admitting, OnlyACredentialOfARuntimeMakesOne) {
  credentials.tokens.push_back({"acme", sha256("runtime"), "", {}, {}, CredentialRole::Runtime});
  credentials.tokens.push_back({"acme", sha256("agent"), "", {}, {}, CredentialRole::Agent});
  const auto verdict_as = [&](Role role, std::string_view token) {
    Handshake handshake;
    handshake.token = token;
    return text(credentials.admit({handshake, "acme", "i-1", role, {}}, kNow));
  };
  EXPECT_EQ(verdict_as(Role::Runtime, "good"), "E.SESSION.DENIED");
  EXPECT_EQ(verdict_as(Role::Runtime, "agent"), "E.SESSION.DENIED");
  EXPECT_EQ(verdict_as(Role::Runtime, "runtime"), "");
  EXPECT_EQ(verdict_as(Role::Worker, "runtime"), "E.SESSION.DENIED");
  EXPECT_EQ(verdict_as(Role::Worker, "agent"), "");
  Handshake handshake;
  handshake.mode = AuthMode::Mtls;
  EXPECT_EQ(text(credentials.admit({handshake, "acme", "i-1", Role::Runtime, peer}, kNow)),
            "E.SESSION.DENIED");
  credentials.certificates[0].role = CredentialRole::Runtime;
  EXPECT_EQ(text(credentials.admit({handshake, "acme", "i-1", Role::Runtime, peer}, kNow)), "");
}

TEST_F(Admitting, ACredentialSaysWhoShowsIt) {
  credentials.certificates[0].role = CredentialRole::Agent;
  credentials.tokens[1].application = "bank";
  const auto by_certificate = credentials.identify(peer, "", kNow);
  ASSERT_TRUE(by_certificate);
  EXPECT_EQ(by_certificate->instance, "i-1");
  EXPECT_EQ(by_certificate->role, CredentialRole::Agent);
  EXPECT_EQ(credentials.identify({}, "bound", kNow)->instance, "i-2");
  EXPECT_EQ(credentials.identify({}, "bound", kNow)->application, "bank");
  EXPECT_FALSE(credentials.identify({}, "old", kNow));
  EXPECT_FALSE(credentials.identify({}, "", kNow));
  peer.certificate_sans.clear();
  peer.certificate_fingerprint = "f2";
  EXPECT_FALSE(credentials.identify(peer, "good", kNow)) << "an unknown certificate is not made up for";
}

TEST_F(Admitting, ACertificateIsGoodForItsTenantAndItsWorker) {
  Handshake handshake;
  handshake.mode = AuthMode::Mtls;
  EXPECT_EQ(verdict("acme", handshake, peer), "");
  EXPECT_EQ(verdict("globex", handshake, peer), "E.SESSION.TENANT_MISMATCH");
  EXPECT_EQ(verdict("acme", handshake, {}), "E.AUTH.MTLS_REQUIRED");
  peer.certificate_sans.clear();
  peer.certificate_fingerprint = "f2";
  EXPECT_EQ(verdict("acme", handshake, peer), "E.AUTH.UNAUTHENTICATED");
}

TEST_F(Admitting, WhereNoCertificateCanBeShownItsModeIsNotTaken) {
  credentials.takes_certificates = false;
  Handshake handshake;
  handshake.mode = AuthMode::Mtls;
  //= HSK-4
  EXPECT_EQ(verdict("acme", handshake, {}), "E.AUTH.MODE_UNSUPPORTED");
  EXPECT_EQ(verdict("strict", handshake, {}), "E.AUTH.MODE_UNSUPPORTED");
  EXPECT_EQ(verdict_on_token("good"), "") << "tokens are taken as before";
  EXPECT_EQ(verdict_on_token("good", "strict"), "E.AUTH.MTLS_REQUIRED") << "policy asks for one";
}

TEST_F(Admitting, ReloadedCredentialsKeepWhatTheListenerTakes) {
  LiveTenants tenants{SessionConfig{}, {}};
  Handshake handshake;
  handshake.mode = AuthMode::Mtls;
  for (const bool takes : {true, false}) {
    LiveAdmission admission{credentials, tenants, takes};
    admission.replace(credentials);
    //= HSK-4
    EXPECT_EQ(text(admission.admit({handshake, "acme", "i-1", Role::Worker, peer})),
              takes ? "" : "E.AUTH.MODE_UNSUPPORTED");
  }
}

TEST_F(Admitting, AFingerprintThatIsClaimedMustBeTheOneThatIsShown) {
  Handshake handshake;
  handshake.mode = AuthMode::Mtls;
  handshake.fingerprint = "f1";
  //= HSK-14
  EXPECT_EQ(verdict("acme", handshake, peer), "");
  handshake.fingerprint = "f2";
  EXPECT_EQ(verdict("acme", handshake, peer), "E.AUTH.UNAUTHENTICATED");
}

TEST_F(Admitting, WherePolicyAsksForACertificateAResumeWithoutHandshakeNeedsItToo) {
  //= REV-6
  EXPECT_EQ(verdict_on_resume("acme", {}), "");
  EXPECT_EQ(verdict_on_resume("strict", {}), "E.AUTH.MTLS_REQUIRED");
  EXPECT_EQ(verdict_on_resume("strict", peer), "");
  peer.certificate_fingerprint = "f2";
  EXPECT_EQ(verdict_on_resume("strict", peer), "E.SESSION.TENANT_MISMATCH") << "its name is acme's";
}

}  // namespace
}  // namespace windlass
