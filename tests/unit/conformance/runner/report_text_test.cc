#include "conformance/runner/report_text.h"

#include <gtest/gtest.h>

#include <limits>

#include "conformance/runner/pretty_json.h"
#include "protocol/base/utf8.h"
#include "tests/unit/conformance/runner/sample_report.h"

namespace windlass::conformance {
namespace {

TEST(ReportText, ReplacesEachByteThatIsPartOfNoCharacter) {
  EXPECT_EQ(clean_utf8("a\xFF"
                       "b"),
            "a\uFFFDb");
  EXPECT_EQ(clean_utf8("\xE2\x82"), "\uFFFD\uFFFD");
  EXPECT_EQ(clean_utf8("\xC0\xAF\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(clean_utf8("\x80 €𝄞"), "\uFFFD €𝄞");
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string pair{static_cast<char>(first), static_cast<char>(second)};
      EXPECT_TRUE(is_utf8(clean_utf8(pair)));
      EXPECT_TRUE(is_utf8(visible(pair)));
    }
  }
}

TEST(ReportText, ShowsWhatWouldSteerATerminalOrAnEye) {
  EXPECT_EQ(visible("a\x1B[2Jb\r\n\tc\x7F"), "a␛[2Jb␍\n\tc␡");
  EXPECT_EQ(visible(std::string_view{"\0", 1}), "␀");
  EXPECT_EQ(visible("\u202E\u009B\uFEFF\uFFFE"), "[U+202E][U+009B][U+FEFF][U+FFFE]");
  EXPECT_EQ(visible("größer 日本語 🙂"), "größer 日本語 🙂");
}

TEST(ReportText, OnOneLineIsNoWiderThanAsked) {
  EXPECT_EQ(one_line("a\nb\tc", 10), "a b c");
  EXPECT_EQ(one_line("ääääää", 6), "ääääää");
  EXPECT_EQ(one_line("ääääää", 4), "äää…");
  EXPECT_EQ(one_line("abc", 1), "…");
  EXPECT_EQ(one_line("abc", 0), "");
}

TEST(ReportText, IsEscapedForMarkup) {
  EXPECT_EQ(escaped("<a href=\"x\" b='y'>&]]>"), "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;]]&gt;");
}

TEST(ReportText, IsAJsonStringThatAScriptElementMayHold) {
  EXPECT_EQ(json_string("a\"\\\n\x01</script>\xFF"), "\"a\\\"\\\\\\n\\u0001\\u003c/script>\uFFFD\"");
}

TEST(ReportText, NumbersAreAlwaysJson) {
  EXPECT_EQ(json_number(0), "0");
  EXPECT_EQ(json_number(-0.0001), "0");
  EXPECT_EQ(json_number(100), "100");
  EXPECT_EQ(json_number(12.5004), "12.5");
  EXPECT_EQ(json_number(std::numeric_limits<double>::infinity()), "0");
  EXPECT_EQ(json_number(std::numeric_limits<double>::quiet_NaN()), "0");
}

TEST(ReportText, DurationsHaveTheUnitThatFits) {
  EXPECT_EQ(duration_text(0.4), "0 ms");
  EXPECT_EQ(duration_text(999.7), "1.00 s");
  EXPECT_EQ(duration_text(1250), "1.25 s");
  EXPECT_EQ(duration_text(59'999), "1 min 0 s");
  EXPECT_EQ(duration_text(125'000), "2 min 5 s");
  EXPECT_EQ(duration_text(-1), "0 ms");
}

TEST(PrettyJson, KeepsOnALineWhatFits) {
  EXPECT_EQ(pretty_json(R"({"a":[1,2],"b":{}})"), R"({"a": [1, 2], "b": {}})");
  EXPECT_EQ(pretty_json(R"( {"a" : [1 , 2]} )", 10), "{\n  \"a\": [\n    1,\n    2\n  ]\n}");
  EXPECT_EQ(pretty_json(R"({"first":{"x":1},"second":[]})", 20),
            "{\n  \"first\": {\"x\": 1},\n  \"second\": []\n}");
}

TEST(PrettyJson, ChangesNothingButSpaceBetweenTokens) {
  EXPECT_EQ(pretty_json(R"({"a":1.50e1,"a":"x, {\"y\": [\\"})"), R"({"a": 1.50e1, "a": "x, {\"y\": [\\"})");
  EXPECT_EQ(pretty_json(R"({"a":"x, {\"y\":[\\","b":2})", 5),
            "{\n  \"a\": \"x, {\\\"y\\\":[\\\\\",\n  \"b\": 2\n}");
}

TEST(PrettyJson, ShowsWhatIsNotJsonAsItCame) {
  for (const char* text : {"", "{", "}", "{\"a\":}", "[1,2]]", "closed 1011", "\"\\", "{\"a\":\"\xFF\"}"}) {
    EXPECT_EQ(pretty_json(text), text);
  }
  const std::string deep = std::string(5000, '[') + std::string(5000, ']');
  EXPECT_EQ(pretty_json(deep), deep);
}

TEST(PrettyJson, KnowsTheTypeOfAFrame) {
  EXPECT_EQ(type_of_frame(R"({"id":"1","type":"control.ack"})"), "control.ack");
  for (const char* text : {"", "[]", "7", R"({"type":7})", "{}", "nonsense"})
    EXPECT_EQ(type_of_frame(text), "");
}

}  // namespace
}  // namespace windlass::conformance
