// What the runner takes for a message as described, over the golden vectors of schema/examples.
#include "conformance/runner/message.h"

#include <gtest/gtest.h>

#include "conformance/runner/embedded.h"
#include "conformance/runner/examples.h"
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

TEST(RunnersExamples, AreThoseOfTheFolderThatWebSocketLetsPass) {
  std::map<std::string, const support::Example*> left;
  const auto examples = support::invalid_examples();
  for (const support::Example& example : examples) left[example.name] = &example;
  const json::value own_sender{{"role", "worker"}, {"id", "w-9"}};
  std::size_t every = 0;
  for (const int revision : {1, 2}) {
    for (const char* const beginning : {"ack.", "drain.", "envelope.", "handshake.", "heartbeat.",
                                        "register.", "reset.", "resume.", "session.accept."}) {
      for (const InvalidExample& sent : invalid_examples({beginning}, revision, "acme", own_sender)) {
        const auto found = left.find(sent.name);
        ASSERT_NE(found, left.end()) << sent.name;
        EXPECT_EQ(sent.code, found->second->code) << sent.name;
        EXPECT_EQ(sent.kind, found->second->kind) << sent.name;
        const auto read = read_message(sent.message, sent.kind, revision);
        ASSERT_FALSE(read.has_value()) << sent.name;
        EXPECT_EQ(to_string(read.error().code), sent.code) << sent.name;
        left.erase(found);
        ++every;
      }
    }
  }
  EXPECT_GT(every, 300U);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left.begin()->first, "envelope.not-utf8");
  EXPECT_TRUE(invalid_examples({"nobody."}, 2, "acme", own_sender).empty());
}

TEST(RunnersExamples, NameTenantAndSenderOfTheRunnerUnlessTheyAreTheFlaw) {
  const json::value own_sender{{"role", "worker"}, {"id", "w-9"}};
  const auto sent = [&](const char* name) {
    return invalid_examples({name}, 2, "t-9", own_sender).at(0).message;
  };
  for (const char* const name :
       {"heartbeat.cpu-null", "heartbeat.duplicate-metric", "envelope.attachment-short"}) {
    EXPECT_NE(sent(name).find("t-9"), std::string::npos) << sent(name);
    EXPECT_NE(sent(name).find(R"({"role":"worker","id":"w-9"})"), std::string::npos) << sent(name);
  }
  EXPECT_EQ(sent("envelope.tenant-too-long").find("t-9"), std::string::npos);
  EXPECT_EQ(sent("envelope.sender-role").find("w-9"), std::string::npos);
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
