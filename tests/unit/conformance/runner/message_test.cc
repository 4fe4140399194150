// What the runner takes for a message as described, over the golden vectors of schema/examples.
#include "conformance/runner/message.h"

#include <gtest/gtest.h>

#include "conformance/runner/embedded.h"
#include "protocol/base/error_code.h"
#include "tests/support/examples.h"

namespace windlass::conformance {
namespace {

const WireSchemas& published_schemas() {
  static const auto schemas = [] {
    constexpr std::string_view kFolder = "schema/messages/";
    std::map<std::string, std::string> files;
    for (const auto& [path, text] : embedded_files()) {
      if (path.starts_with(kFolder)) files[path.substr(kFolder.size())] = text;
    }
    return WireSchemas::parse(files);
  }();
  return **schemas;
}

Result<json::object> read_message(const std::string& message, MessageKind kind, int revision) {
  const auto parts = parts_of(message, kind);
  if (!parts) return parts.error();
  return read_frame(*parts, published_schemas(), revision);
}

Result<json::object> read_example(const support::Example& example) {
  return read_message(example.message, example.kind, example.revision == Revision::One ? 1 : 2);
}

TEST(RunnersMessage, EveryValidExampleIsTaken) {
  const auto examples = support::valid_examples();
  ASSERT_FALSE(examples.empty());
  for (const support::Example& example : examples) {
    const auto read = read_example(example);
    EXPECT_TRUE(read.has_value()) << example.name << ": " << read.error().reason;
  }
}

TEST(RunnersMessage, EveryInvalidExampleIsRefusedWithTheCodeThatItNames) {
  const auto examples = support::invalid_examples();
  ASSERT_FALSE(examples.empty());
  for (const support::Example& example : examples) {
    const auto read = read_example(example);
    ASSERT_FALSE(read.has_value()) << example.name << " should break: " << example.rule;
    EXPECT_EQ(to_string(read.error().code), example.code) << example.name << ": " << read.error().reason;
  }
}

TEST(RunnersMessage, TypeNamedLikeASchemaThatIsNoPayloadsIsAnyUnknownType) {
  for (const char* const type : {"control.envelope", "control.ack.revision1", "control.nobody.knows"}) {
    const std::string text = R"({"type": ")" + std::string{type} +
                             R"(", "id": "f-1", "ts": "2026-11-16T08:00:00.000Z", "tenant": "acme",)"
                             R"( "sender": {"role": "worker", "id": "w"}, "payload": {"a": 1, "a": 2}})";
    const auto read = read_message(text, MessageKind::Text, 2);
    EXPECT_TRUE(read.has_value()) << type << ": " << read.error().reason;
  }
}

}  // namespace
}  // namespace windlass::conformance
