#include "protocol/websocket/upgrade.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/support/beast_oracle.h"

namespace windlass::websocket {
namespace {

const UpgradeRules kRules{.paths = {"/session"}, .origins_allowed = {"https://console.example"}};

// Header lines by name, so that a test changes one and leaves the rest right.
using Lines = std::map<std::string, std::string>;
const Lines kLines = {{"Host", "scheduler.example:7443"},
                      {"Upgrade", "websocket"},
                      {"Connection", "Upgrade"},
                      {"Sec-WebSocket-Version", "13"},
                      {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}};

Bytes request_with(const Lines& changes, const Bytes& first = "GET /session HTTP/1.1") {
  Lines lines = kLines;
  for (const auto& [name, value] : changes) lines[name] = value;
  Bytes out = first + "\r\n";
  for (const auto& [name, value] : lines) {
    if (value != "absent") out.append(name).append(": ").append(value).append("\r\n");
  }
  return out + "\r\n";
}

struct Verdict {
  std::optional<UpgradeRequest> request;
  int status = 0;  // of a refusal
  Bytes leftover;
};

Verdict serve(Bytes bytes, const UpgradeRules& rules = kRules) {
  UpgradeRequestReader reader{rules};
  std::span<char> input{bytes};
  auto result = reader.handle_bytes(input);
  if (!result) return {std::nullopt, static_cast<int>(reader.refusal_status()), {}};
  return {*result, 0, {input.begin(), input.end()}};
}

TEST(UpgradeServer, AcceptsTheExampleOfTheRfcAndProvesIt) {
  const Verdict verdict = serve(request_with({}));
  ASSERT_TRUE(verdict.request);
  EXPECT_EQ(verdict.request->target, "/session");
  EXPECT_EQ(verdict.request->host, "scheduler.example:7443");
  EXPECT_EQ(verdict.request->origin, std::nullopt);
  EXPECT_EQ(verdict.request->authorization, std::nullopt);
  EXPECT_EQ(accept_response(*verdict.request),
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
}

TEST(UpgradeServer, ExposesOriginAuthorizationAndTheWholeTarget) {
  const Verdict verdict =
      serve(request_with({{"Origin", "https://console.example"}, {"Authorization", "Bearer abc"}},
                         "GET /session?revision=2 HTTP/1.1"));
  ASSERT_TRUE(verdict.request);
  EXPECT_EQ(verdict.request->target, "/session?revision=2");
  EXPECT_EQ(verdict.request->origin, "https://console.example");
  EXPECT_EQ(verdict.request->authorization, "Bearer abc");
}

TEST(UpgradeServer, GivesTheSameRequestAndLeftoverAtEveryCut) {
  const Bytes bytes = request_with({}) + "\x81\x05Hello";
  const std::size_t head = bytes.size() - 7;
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    Bytes copy = bytes;
    UpgradeRequestReader reader{kRules};
    std::span<char> input = std::span<char>{copy}.first(cut);
    auto result = reader.handle_bytes(input);
    ASSERT_TRUE(result.has_value());
    ASSERT_EQ(result->has_value(), cut >= head) << cut;
    if (!*result) {
      ASSERT_TRUE(input.empty());
      input = std::span<char>{copy}.subspan(cut);
      result = reader.handle_bytes(input);
      ASSERT_TRUE(result.has_value() && result->has_value()) << cut;
      ASSERT_EQ(Bytes(input.begin(), input.end()), "\x81\x05Hello");
    }
    ASSERT_EQ((*result)->target, "/session");
  }
}

TEST(UpgradeServer, ReadsHeaderNamesAndTokensInAnyCaseAndLists) {
  Bytes bytes = request_with({{"Upgrade", "WebSocket"}, {"Connection", "keep-alive, UPGRADE"}});
  bytes.replace(bytes.find("Upgrade:"), 8, "uPGRADE:");
  EXPECT_TRUE(serve(bytes).request);
}

//= TRN-3
TEST(UpgradeServer, IgnoresOfferedExtensionsAndSubprotocols) {
  const Verdict verdict = serve(
      request_with({{"Sec-WebSocket-Extensions", "permessage-deflate"}, {"Sec-WebSocket-Protocol", "chat"}}));
  ASSERT_TRUE(verdict.request);
  EXPECT_EQ(accept_response(*verdict.request).find("Sec-WebSocket-Ext"), Bytes::npos);
  //= TRN-6
  EXPECT_EQ(accept_response(*verdict.request).find("Sec-WebSocket-Protocol"), Bytes::npos);
}

struct Refused {
  const char* what;
  Bytes request;
  int status;
};

class UpgradeServerRefuses : public ::testing::TestWithParam<Refused> {};

//= TRN-2
TEST_P(UpgradeServerRefuses, WithItsStatus) {
  const Verdict verdict = serve(GetParam().request);
  //= TRN-6
  //= TRN-7
  EXPECT_FALSE(verdict.request);
  EXPECT_EQ(verdict.status, GetParam().status);
}

INSTANTIATE_TEST_SUITE_P(
    Requests, UpgradeServerRefuses,
    ::testing::Values(
        Refused{"post", request_with({}, "POST /session HTTP/1.1"), 400},
        Refused{"http_1_0", request_with({}, "GET /session HTTP/1.0"), 400},
        Refused{"http_2_0", request_with({}, "GET /session HTTP/2.0"), 400},
        Refused{"not_http", "GET what is this\r\n\r\n", 400},
        Refused{"tls_hello", Bytes{"\x16\x03\x01", 3}, 400},
        Refused{"header_without_colon", "GET /session HTTP/1.1\r\nHost\r\n\r\n", 400},
        Refused{"no_host", request_with({{"Host", "absent"}}), 400},
        Refused{"two_hosts", request_with({{"Host", "a\r\nHost: b"}}), 400},
        Refused{"absolute_target", request_with({}, "GET http://a/session HTTP/1.1"), 400},
        Refused{"star_target", request_with({}, "GET * HTTP/1.1"), 400},
        Refused{"unknown_path", request_with({}, "GET /other HTTP/1.1"), 404},
        Refused{"longer_path", request_with({}, "GET /session/x HTTP/1.1"), 404},
        Refused{"no_upgrade", request_with({{"Upgrade", "absent"}}), 426},
        Refused{"other_upgrade", request_with({{"Upgrade", "h2c"}}), 426},
        Refused{"no_connection", request_with({{"Connection", "absent"}}), 426},
        Refused{"connection_keep_alive", request_with({{"Connection", "keep-alive"}}), 426},
        Refused{"no_version", request_with({{"Sec-WebSocket-Version", "absent"}}), 426},
        Refused{"old_version", request_with({{"Sec-WebSocket-Version", "8"}}), 426},
        Refused{"two_versions", request_with({{"Sec-WebSocket-Version", "13\r\nSec-WebSocket-Version: 8"}}),
                400},
        Refused{"no_key", request_with({{"Sec-WebSocket-Key", "absent"}}), 400},
        Refused{"short_key", request_with({{"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25j"}}), 400},
        Refused{"long_key", request_with({{"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=A"}}), 400},
        Refused{"key_not_base64", request_with({{"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25j*Q=="}}), 400},
        Refused{"two_keys",
                request_with({{"Sec-WebSocket-Key",
                               "dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="}}),
                400},
        Refused{"other_origin", request_with({{"Origin", "https://evil.example"}}), 403},
        Refused{"null_origin", request_with({{"Origin", "null"}}), 403},
        Refused{"origin_prefix", request_with({{"Origin", "https://console.example.evil.example"}}), 403},
        Refused{"two_origins",
                request_with({{"Origin", "https://console.example\r\nOrigin: https://evil.example"}}), 400},
        Refused{"two_authorizations", request_with({{"Authorization", "a\r\nAuthorization: b"}}), 400},
        Refused{"body", request_with({{"Content-Length", "5"}}), 400},
        Refused{"chunked_body", request_with({{"Transfer-Encoding", "chunked"}}), 400}),
    [](const auto& refused) { return std::string{refused.param.what}; });

TEST(UpgradeServer, RefusesAHeadOverItsLimitWithoutWaitingForItsEnd) {
  const Bytes fits = request_with(
      {{"X-Filler", Bytes(kRules.head_bytes_max - request_with({{"X-Filler", ""}}).size(), 'x')}});
  ASSERT_EQ(fits.size(), limits::kUpgradeHeadBytesMax);
  //= TRN-7
  EXPECT_EQ(limits::kUpgradeHeadBytesMax, 8192U);
  EXPECT_TRUE(serve(fits).request);
  const Bytes over = request_with({{"X-Filler", Bytes(10'000, 'x')}});
  EXPECT_EQ(serve(over).status, 431);
  EXPECT_EQ(serve(over.substr(0, limits::kUpgradeHeadBytesMax)).status, 431);
  EXPECT_EQ(serve(over.substr(0, limits::kUpgradeHeadBytesMax - 1)).status, 0);
}

TEST(UpgradeServer, NeverRepeatsWhatTheClientSentInItsError) {
  Bytes bytes = request_with({{"Authorization", "Bearer secret"}, {"Origin", "https://evil.example"}});
  UpgradeRequestReader reader{kRules};
  std::span<char> input{bytes};
  const auto result = reader.handle_bytes(input);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::ProtoWebSocket);
  EXPECT_EQ(result.error().blame, Blame::Peer);
  EXPECT_EQ(result.error().reason, "this Origin may not connect");
}

TEST(UpgradeServer, SaysHowToComeBackInARefusal) {
  EXPECT_EQ(
      refusal_response(HttpStatus::ServiceUnavailable, milliseconds{1500}),
      "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\nRetry-After: 2\r\n\r\n");
  EXPECT_EQ(refusal_response(HttpStatus::UpgradeRequired),
            "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\nConnection: Upgrade, close\r\n"
            "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n");
}

constexpr UpgradeNonce kNonce = {'t', 'h', 'e', ' ', 's', 'a', 'm', 'p',
                                 'l', 'e', ' ', 'n', 'o', 'n', 'c', 'e'};
const Bytes kAccepted =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

Result<std::optional<UpgradeReply>> receive(Bytes bytes) {
  UpgradeResponseReader reader{kNonce};
  std::span<char> input{bytes};
  return reader.handle_bytes(input);
}

Bytes replaced(Bytes text, const Bytes& what, const Bytes& with) {
  EXPECT_NE(text.find(what), Bytes::npos) << what;
  return text.replace(text.find(what), what.size(), with);
}

TEST(UpgradeClient, WritesARequestOurServerAccepts) {
  const auto request = upgrade_request(
      {.host = "h:1", .target = "/session", .origin = "https://console.example", .authorization = "Bearer x"},
      kNonce);
  ASSERT_TRUE(request.has_value());
  const Verdict verdict = serve(*request);
  ASSERT_TRUE(verdict.request);
  EXPECT_EQ(verdict.request->key, "dGhlIHNhbXBsZSBub25jZQ==");
  EXPECT_EQ(verdict.request->host, "h:1");
  EXPECT_EQ(verdict.request->authorization, "Bearer x");
}

TEST(UpgradeClient, RefusesFieldsThatWouldBreakTheHead) {
  const UpgradeAddress good{.host = "h", .target = "/"};
  EXPECT_TRUE(upgrade_request(good, kNonce).has_value());
  for (const char* bad : {"", "a b", "a\r\nX: y", "a\n", "\x7F", "\xC3\xBC"}) {
    UpgradeAddress address = good;
    address.host = bad;
    EXPECT_FALSE(upgrade_request(address, kNonce).has_value()) << bad;
    address = good;
    address.target = std::string{"/"} + bad;
    EXPECT_EQ(upgrade_request(address, kNonce).has_value(), *bad == '\0') << bad;
    address = good;
    address.origin = bad;
    EXPECT_FALSE(upgrade_request(address, kNonce).has_value()) << bad;
  }
  EXPECT_FALSE(upgrade_request({.host = "h", .target = "session"}, kNonce).has_value());
  EXPECT_FALSE(upgrade_request({.host = "h", .target = "/a#b"}, kNonce).has_value());
  EXPECT_FALSE(upgrade_request({.host = "h", .target = "/", .authorization = "a\r\nb"}, kNonce).has_value());
}

TEST(UpgradeClient, TakesAnAcceptedAnswerAtEveryCutAndLeavesWhatFollows) {
  const Bytes bytes = kAccepted + "\x81\x02hi";
  for (std::size_t cut = 0; cut < kAccepted.size(); ++cut) {
    Bytes copy = bytes;
    UpgradeResponseReader reader{kNonce};
    std::span<char> input = std::span<char>{copy}.first(cut);
    auto result = reader.handle_bytes(input);
    ASSERT_TRUE(result.has_value() && !*result) << cut;
    input = std::span<char>{copy}.subspan(cut);
    result = reader.handle_bytes(input);
    ASSERT_TRUE(result.has_value() && *result && (*result)->is_accepted()) << cut;
    ASSERT_EQ(Bytes(input.begin(), input.end()), "\x81\x02hi");
  }
}

TEST(UpgradeClient, RefusesAnAnswerThatProvesNothingOrWantsMore) {
  const Bytes wrong[] = {
      replaced(kAccepted, "s3pPLMBi", "AAAAAAAA"),
      replaced(kAccepted, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", ""),
      replaced(kAccepted, "Upgrade: websocket\r\n", ""),
      replaced(kAccepted, "Upgrade: websocket", "Upgrade: h2c"),
      replaced(kAccepted, "Connection: Upgrade", "Connection: close"),
      replaced(kAccepted, "Connection:", "Sec-WebSocket-Extensions: permessage-deflate\r\nConnection:"),
      replaced(kAccepted, "Connection:", "Sec-WebSocket-Protocol: chat\r\nConnection:"),
      replaced(kAccepted, "HTTP/1.1", "HTTP/1.0"),
      "SSH-2.0-server\r\n",
      "HTTP/1.1 abc\r\n\r\n",
      "HTTP/1.1 101 Switching Protocols\r\nX: " + Bytes(limits::kUpgradeHeadBytesMax, 'x'),
  };
  for (const Bytes& bytes : wrong) {
    const auto result = receive(bytes);
    ASSERT_FALSE(result.has_value()) << bytes;
    EXPECT_EQ(result.error().blame, Blame::Peer);
  }
}

TEST(UpgradeClient, ReportsARefusalWithItsRetryHint) {
  const auto status_and_hint = [](const Bytes& retry_after) {
    const auto result = receive("HTTP/1.1 503 Service Unavailable\r\n" + retry_after + "\r\n");
    EXPECT_EQ((*result)->status, 503);
    EXPECT_FALSE((*result)->is_accepted());
    return (*result)->retry_after;
  };
  EXPECT_EQ(status_and_hint(""), std::nullopt);
  EXPECT_EQ(status_and_hint("Retry-After: 7\r\n"), Duration{seconds{7}});
  EXPECT_EQ(status_and_hint("Retry-After: 99999\r\n"), limits::kRetryAfterMax);
  EXPECT_EQ(status_and_hint("Retry-After: 99999999999999999999\r\n"), limits::kRetryAfterMax);
  for (const char* other : {"Fri, 31 Dec 1999 23:59:59 GMT", "-1", "7x", ""}) {
    EXPECT_EQ(status_and_hint(Bytes{"Retry-After: "} + other + "\r\n"), std::nullopt) << other;
  }
}

TEST(UpgradeInterop, BeastServesOurClient) {
  const auto request = upgrade_request({.host = "oracle", .target = "/session"}, kNonce);
  const auto reply = receive(support::beast_answer(*request));
  ASSERT_TRUE(reply.has_value()) << reply.error().reason;
  EXPECT_TRUE((*reply)->is_accepted());
}

TEST(UpgradeInterop, BeastTakesOurServersAnswerAndNoOther) {
  EXPECT_TRUE(support::beast_takes_answer([](const Bytes& request) {
    const Verdict verdict = serve(request);
    EXPECT_TRUE(verdict.request);
    return accept_response(*verdict.request);
  }));
  EXPECT_FALSE(support::beast_takes_answer([](const Bytes&) { return kAccepted; }));
  EXPECT_FALSE(
      support::beast_takes_answer([](const Bytes&) { return refusal_response(HttpStatus::Forbidden); }));
}

}  // namespace
}  // namespace windlass::websocket
