#include "runtime/adapters/http_routes.h"

#include <gtest/gtest.h>

#include "runtime/adapters/http_asked.h"

namespace windlass::runtime {
namespace {

std::string matched(std::string_view route, std::string_view path) {
  const auto parsed = Route::parse(route);
  if (!parsed) return "error: " + parsed.error().reason;
  const auto read = read_path(path);
  if (!read) return "bad path";
  const auto params = parsed->match(read->segments);
  if (!params) return "no";
  std::string text = "yes";
  for (const auto& [name, value] : *params) text += " " + name + "=" + value;
  return text;
}

TEST(Route, MatchesLiteralsWithoutRegardToCase) {
  EXPECT_EQ(matched("orders/all", "/Orders/ALL"), "yes");
  EXPECT_EQ(matched("orders", "/orders/"), "yes");
  EXPECT_EQ(matched("orders", "/orders/1"), "no");
  EXPECT_EQ(matched("", "/"), "yes");
}

TEST(Route, TakesParametersDecoded) {
  EXPECT_EQ(matched("orders/{id}", "/orders/a%20b"), "yes id=a b");
  EXPECT_EQ(matched("orders/{id}", "/orders"), "no");
  EXPECT_EQ(matched("orders/{id}", "/orders/%zz"), "bad path");
  EXPECT_EQ(matched("a/{x}/b/{y}", "/a/1/b/2"), "yes x=1 y=2");
}

TEST(Route, HoldsConstraints) {
  EXPECT_EQ(matched("o/{id:int}", "/o/-12"), "yes id=-12");
  EXPECT_EQ(matched("o/{id:int}", "/o/x"), "no");
  EXPECT_EQ(matched("o/{id:int}", "/o/99999999999"), "no");
  EXPECT_EQ(matched("o/{id:long}", "/o/99999999999"), "yes id=99999999999");
  EXPECT_EQ(matched("o/{id:guid}", "/o/6f9619ff-8b86-d011-b42d-00c04fc964ff"),
            "yes id=6f9619ff-8b86-d011-b42d-00c04fc964ff");
  EXPECT_EQ(matched("o/{id:alpha:minlength(3)}", "/o/ab"), "no");
  EXPECT_EQ(matched("o/{id:alpha:minlength(3)}", "/o/abc"), "yes id=abc");
  EXPECT_EQ(matched("o/{id:range(1,5)}", "/o/6"), "no");
  EXPECT_EQ(matched("o/{id:bool}", "/o/True"), "yes id=True");
  EXPECT_EQ(matched("o/{id:double}", "/o/1.5e3"), "yes id=1.5e3");
}

TEST(Route, KnowsOptionalDefaultAndRest) {
  EXPECT_EQ(matched("o/{id?}", "/o"), "yes");
  EXPECT_EQ(matched("o/{id?}", "/o/7"), "yes id=7");
  EXPECT_EQ(matched("o/{id:int?}", "/o/x"), "no");
  EXPECT_EQ(matched("o/{id=5}", "/o"), "yes id=5");
  EXPECT_EQ(matched("files/{*rest}", "/files/a/b%2Fc/d"), "yes rest=a/b%2Fc/d");
  EXPECT_EQ(matched("files/{*rest}", "/files/a//b"), "yes rest=a//b");
  EXPECT_EQ(matched("files/{*rest}", "/files"), "yes");
}

TEST(Route, TakesPartsOfSegments) {
  EXPECT_EQ(matched("f/{name}.{ext}", "/f/a.b.txt"), "yes name=a.b ext=txt");
  EXPECT_EQ(matched("f/v{n:int}", "/f/v12"), "yes n=12");
  EXPECT_EQ(matched("f/v{n:int}", "/f/x12"), "no");
}

TEST(Route, KeepsEmptySegmentsAndEscapedSlashesApart) {
  EXPECT_EQ(matched("o/{id}", "/o//"), "no");
  EXPECT_EQ(matched("o/{id}", "//o/1"), "no");
  EXPECT_EQ(matched("o/{id}/x", "/o//x"), "no");
  EXPECT_EQ(matched("o/{id?}", "/o//"), "no");
  EXPECT_EQ(matched("o/{id}", "/o/a%2fb%2Fc%252F"), "yes id=a%2fb%2Fc%2F");
  EXPECT_EQ(matched("o/{id}", "/o/x/../../o/y"), "yes id=y");
  EXPECT_EQ(matched("o/{id}", "/o//../y"), "yes id=y") << "what is between two slashes is a segment, too";
}

TEST(Route, HoldsRegularExpressions) {
  EXPECT_EQ(matched(R"(o/{id:regex(^\d{{3}}-\w$)})", "/o/123-a"), "yes id=123-a");
  EXPECT_EQ(matched(R"(o/{id:regex(^\d{{3}}-\w$)})", "/o/12-a"), "no");
  EXPECT_EQ(matched("o/{id:regex(^(list|get)$)}", "/o/LIST"), "yes id=LIST") << "without regard to case";
  EXPECT_EQ(matched("o/{id:regex(b)}", "/o/abc"), "yes id=abc") << "anywhere";
  EXPECT_EQ(matched("o/{id:regex(^[a:)=]+$):minlength(2)=aa}", "/o/a:"), "yes id=a:");
  EXPECT_EQ(matched("o/{id:regex(^[a:)=]+$):minlength(2)=aa}", "/o/a"), "no");
  EXPECT_EQ(matched("o/{id:regex(^[a:)=]+$):minlength(2)=aa}", "/o"), "yes id=aa");
  EXPECT_EQ(matched("o/{id:regex(^(?:a/)?b$)?}", "/o/b"), "yes id=b");
  EXPECT_NE(matched("o/{id:regex((?=a))}", "/o/a").find("RE2 does not accept"), std::string::npos);
  EXPECT_NE(matched("o/{id:regex}", "/o/a").find("wrong arguments"), std::string::npos);
}

TEST(Route, HoldsDatesAndTimes) {
  for (const char* const good :
       {"2024-02-29", "2024-02-29T23:59", "2024-02-29T23:59:59.123Z", "2024-02-29 23:59:59+01:00", "2024.2.9",
        "02-29-2024", "2-9-2024 1:30 PM", "29 Feb 2024", "29-Feb-2024", "February 29, 2024", "23:59",
        "Thu, 29 Feb 2024 10:00:00 GMT"}) {
    EXPECT_EQ(matched("o/{d:datetime}", "/o/" + std::string{good}), "yes d=" + std::string{good});
  }
  for (const char* const bad : {"2023-02-29", "2024-13-01", "2024-02.01", "29-02-2024", "2024-02-29T24:00",
                                "2024-02-29T", "tomorrow", "20240229", "29 Foo 2024", "13:00 PM", "7"}) {
    EXPECT_EQ(matched("o/{d:datetime}", "/o/" + std::string{bad}), "no") << bad;
  }
}

TEST(Route, LetsTheLastPartAfterAPeriodBeMissing) {
  EXPECT_EQ(matched("f/{name}.{ext?}", "/f/a.b.txt"), "yes name=a.b ext=txt");
  EXPECT_EQ(matched("f/{name}.{ext?}", "/f/a"), "yes name=a");
  EXPECT_EQ(matched("f/{name}.{ext?}", "/f/a."), "no");
  EXPECT_EQ(matched("f/{name}.{ext:int?}", "/f/a.b"), "no");
  EXPECT_EQ(matched("f/{name}.{ext?}", "/f"), "no");
  EXPECT_NE(matched("f/{name}-{ext?}", "/f/a").find("after a period"), std::string::npos);
  EXPECT_NE(matched("f/{name?}.{ext}", "/f/a").find("after a period"), std::string::npos);
  EXPECT_EQ(matched("f/{{name}}.{ext}", "/f/{name}.b"), "yes ext=b");
}

TEST(Route, FitsLiteralsFromTheRight) {
  EXPECT_EQ(matched("{a}-{b}-{c}", "/1-2-3-4"), "yes a=1-2 b=3 c=4");
  EXPECT_EQ(matched("{a}-{b}-{c}", "/1-2"), "no");
  EXPECT_EQ(matched("{a}--{b}", "/1---2"), "yes a=1- b=2");
  EXPECT_EQ(matched("v{a}-{b}x", "/V1-2X"), "yes a=1 b=2");
  EXPECT_EQ(matched("v{a}", "/vv"), "yes a=v");
  EXPECT_EQ(matched("v{a}v", "/vv"), "no");
  EXPECT_EQ(matched("v{a}", "/v"), "no");
  EXPECT_EQ(matched("{a}.", "/."), "no");
  EXPECT_EQ(matched("a-{b}-{c}", "/a-b"), "no");
  EXPECT_EQ(matched("{a:int}-{b:int}", "/1-x"), "no");
  EXPECT_EQ(matched("{a:int}-{b}", "/1-2-3"), "no") << "constraints judge what was found, as ASP.NET's";
}

// Tried in every way there are, this would not end.
TEST(Route, TriesALongSegmentInOneWayOnly) {
  EXPECT_EQ(matched("{a}-{b}-{c}-{d}-{e:int}", "/" + std::string(60'000, '-') + "x"), "no");
  EXPECT_EQ(matched("{a:int}.{b:int}", "/" + std::string(60'000, '1') + ".x"), "no");
}

TEST(Route, SaysWhatIsWrongWithATemplate) {
  EXPECT_NE(matched("o/{id", "/o/1").find("does not close"), std::string::npos);
  EXPECT_NE(matched("o/{id:odd}", "/o/1").find("not known"), std::string::npos);
  EXPECT_NE(matched("o/{*rest}/x", "/o/1").find("after a part that takes all"), std::string::npos);
  EXPECT_NE(matched("o/{a?}/x", "/o/1").find("may be missing"), std::string::npos);
  EXPECT_NE(matched("o/{a}{b}", "/o/1").find("nothing between"), std::string::npos);
  EXPECT_NE(matched("o/{}", "/o/1").find("no name"), std::string::npos);
  EXPECT_NE(matched("o//x", "/o/x").find("two slashes in a row"), std::string::npos);
  EXPECT_NE(matched("o//{id}", "/o/1").find("two slashes in a row"), std::string::npos);
  EXPECT_EQ(matched("/o/{id}/", "/o/1"), matched("o/{id}", "/o/1"));
}

RouteTable table_of(const std::vector<std::pair<std::string, std::vector<std::string>>>& routes) {
  RouteTable table;
  for (std::size_t i = 0; i < routes.size(); ++i) {
    table.add({Route::parse(routes[i].first).value(), routes[i].second, i});
  }
  return table;
}

TEST(RouteTable, PrefersTheMoreExactRoute) {
  const RouteTable table = table_of({{"{*all}", {}},
                                     {"o/{id}", {}},
                                     {"o/{id:int}", {}},
                                     {"o/new", {}},
                                     {"{*all:regex(^deep/)}", {}},
                                     {"o/{id}.{ext?}", {}}});
  const auto target = [&](std::string_view path) {
    return table.find(read_path(path)->segments, "GET").target;
  };
  EXPECT_EQ(target("/o/new"), 3U);
  EXPECT_EQ(target("/o/12"), 2U) << "of equals the first";
  EXPECT_EQ(target("/o/x"), 5U) << "parts before a plain parameter";
  EXPECT_EQ(target("/o/x."), 1U);
  EXPECT_EQ(target("/deep/x"), 4U);
  EXPECT_EQ(target("/elsewhere/far"), 0U);
}

TEST(RouteTable, TellsAWrongMethodFromAWrongPath) {
  const RouteTable table = table_of({{"o", {"GET"}}, {"o", {"POST", "PUT"}}});
  EXPECT_EQ(table.find({"o"}, "PUT").target, 1U);
  EXPECT_EQ(table.find({"o"}, "HEAD").target, 0U);
  const auto wrong = table.find({"o"}, "DELETE");
  EXPECT_FALSE(wrong.target);
  EXPECT_EQ(wrong.allowed, (std::vector<std::string>{"GET", "POST", "PUT"}));
  EXPECT_TRUE(table.find({"p"}, "GET").allowed.empty());
}

TEST(Route, HasABoundedNumberOfConstraints) {
  std::string good = "a/{x";
  for (std::size_t i = 0; i < Route::kConstraintsMax; ++i) good += ":regex(a)";
  const auto route = Route::parse(good + "}");
  ASSERT_TRUE(route);
  EXPECT_EQ(route->patterns(), Route::kConstraintsMax);
  EXPECT_FALSE(Route::parse(good + ":int}"));
  EXPECT_FALSE(Route::parse(good + "}/{y:int}"));
}

}  // namespace
}  // namespace windlass::runtime
