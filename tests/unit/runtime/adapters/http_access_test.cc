#include "runtime/adapters/http_access.h"

#include <gtest/gtest.h>

namespace windlass::runtime {
namespace {

TEST(HttpKeys, EachOpensWhatItIsForAndNoMore) {
  HttpKeys keys;
  keys.everywhere.admin = {sha256("root")};
  keys.everywhere.host = {sha256("all")};
  keys.applications["shop"] = {
      {sha256("chief")}, {sha256("host")}, {{"buy", {sha256("one"), sha256("two")}}}};
  const HttpDoor buy{"Shop", "Buy", AuthLevel::Function};
  const HttpDoor sell{"shop", "sell", AuthLevel::Function};
  const HttpDoor close{"shop", "close", AuthLevel::Admin};
  const HttpDoor other{"bank", "buy", AuthLevel::Function};
  const auto open = [&](const HttpDoor& door) {
    std::string opening;
    for (const char* key : {"root", "all", "chief", "host", "one", "two", "none", ""}) {
      if (opens(keys, door, key)) opening += std::string{key} + ' ';
    }
    return opening;
  };
  EXPECT_EQ(open(buy), "root all chief host one two ");
  EXPECT_EQ(open(sell), "root all chief host ");
  EXPECT_EQ(open(close), "root chief ");
  EXPECT_EQ(open(other), "root all ");
}

TEST(HttpHosts, AllowAddressesTheLoopbackAndWhatIsNamed) {
  const HttpHosts none;
  for (const char* host :
       {"localhost", "localhost:80", "shop.localhost", "127.0.0.1:1", "[::1]", "10.0.0.7"}) {
    EXPECT_TRUE(none.allows(host)) << host;
  }
  for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.nip.example", ""}) {
    EXPECT_FALSE(none.allows(host)) << host;
  }
  const HttpHosts some{{"api.example", "*.Wide.example"}};
  EXPECT_TRUE(some.allows("api.example:8443"));
  EXPECT_TRUE(some.allows("a.b.wide.example."));
  EXPECT_FALSE(some.allows("wide.example"));
  EXPECT_FALSE(some.allows("x.api.example"));
  EXPECT_TRUE(HttpHosts{{"*"}}.allows("anything"));
}

TEST(HttpOrigins, AllowNoPageThatIsNotNamed) {
  const HttpOrigins none;
  EXPECT_TRUE(none.allows("", "http://here"));
  EXPECT_TRUE(none.allows("http://HERE", "http://here"));
  EXPECT_FALSE(none.allows("http://there", "http://here"));
  EXPECT_FALSE(none.allows("null", "http://here"));
  const HttpOrigins one{{"https://shop.example/"}};
  EXPECT_TRUE(one.allows("https://shop.example", "http://here"));
  EXPECT_FALSE(one.allows("https://shop.example.evil", "http://here"));
  EXPECT_EQ(one.headers("https://shop.example").front().second, "https://shop.example");
  EXPECT_TRUE(one.headers("http://there").empty());
}

}  // namespace
}  // namespace windlass::runtime
