// Holds schema/proto/function_rpc.proto against schema/proto/function_rpc.wire, message by message and field
// by field, both ways.
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "protocol/function_rpc/peek.h"
#include "schema/proto/function_rpc.pb.h"

namespace rpc = AzureFunctionsRpcMessages;

namespace windlass {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

const FileDescriptor& file() {
  return *rpc::StreamingMessage::descriptor()->file();
}

bool is_ours(const Descriptor& message) {
  static const std::set<std::string> kOurs = {"WorkerSpecialized", "WorkerSpecializedResponse",
                                              "WorkerEnded",       "WorkerStayDown",
                                              "HttpStream",        "HttpStreamHead",
                                              "HttpStreamField"};
  return kOurs.contains(message.name());
}

// As the list writes it: without the package, and a nested one without the message it is used in.
std::string short_name(const std::string& full_name, const Descriptor& user) {
  std::string name = full_name;
  for (const std::string& prefix :
       {file().package() + ".", user.full_name().substr(file().package().size() + 1) + "."}) {
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  }
  return name;
}

std::string type_of(const FieldDescriptor& field, const Descriptor& user) {
  if (field.is_map()) {
    const Descriptor& entry = *field.message_type();
    return "map<" + type_of(*entry.map_key(), user) + "," + type_of(*entry.map_value(), user) + ">";
  }
  std::string name = field.type_name();
  if (field.message_type() != nullptr) name = short_name(field.message_type()->full_name(), user);
  if (field.enum_type() != nullptr) name = short_name(field.enum_type()->full_name(), user);
  return field.is_repeated() ? "repeated-" + name : name;
}

void add_values(const EnumDescriptor& values, std::set<std::string>& lines) {
  const std::string name = values.full_name().substr(file().package().size() + 1);
  for (int i = 0; i < values.value_count(); ++i) {
    lines.insert("value " + name + " " + std::to_string(values.value(i)->number()) + " " +
                 values.value(i)->name());
  }
}

void add_fields(const Descriptor& message, std::set<std::string>& lines) {
  if (message.field_count() == 0) lines.insert("empty " + message.name());
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    if (field.message_type() != nullptr && is_ours(*field.message_type())) continue;
    std::string line = "field " + message.name() + " " + std::to_string(field.number()) + " " + field.name() +
                       " " + type_of(field, message);
    if (field.real_containing_oneof() != nullptr) line += " oneof " + field.real_containing_oneof()->name();
    lines.insert(line);
  }
  for (int i = 0; i < message.enum_type_count(); ++i) add_values(*message.enum_type(i), lines);
}

std::set<std::string> lines_of_proto() {
  std::set<std::string> lines;
  for (int i = 0; i < file().service_count(); ++i) {
    for (int k = 0; k < file().service(i)->method_count(); ++k) {
      const auto& method = *file().service(i)->method(k);
      lines.insert("method /" + file().service(i)->full_name() + "/" + method.name() +
                   (method.client_streaming() ? " stream " : " ") + method.input_type()->name() +
                   (method.server_streaming() ? " stream " : " ") + method.output_type()->name());
    }
  }
  for (int i = 0; i < file().enum_type_count(); ++i) add_values(*file().enum_type(i), lines);
  for (int i = 0; i < file().message_type_count(); ++i) {
    if (!is_ours(*file().message_type(i))) add_fields(*file().message_type(i), lines);
  }
  return lines;
}

std::set<std::string> lines_of_wire() {
  std::ifstream list{WINDLASS_WIRE_FILE};
  std::set<std::string> lines;
  for (std::string line; std::getline(list, line);) {
    if (!line.empty() && !line.starts_with("#")) lines.insert(line);
  }
  return lines;
}

TEST(FunctionRpcProto, HasEveryMessageFieldAndValueOfTheWireAndNoOther) {
  const std::set<std::string> wire = lines_of_wire();
  const std::set<std::string> proto = lines_of_proto();
  ASSERT_GT(wire.size(), 200U);
  for (const std::string& line : wire)
    EXPECT_TRUE(proto.contains(line)) << "function_rpc.proto lacks: " << line;
  for (const std::string& line : proto)
    EXPECT_TRUE(wire.contains(line)) << "function_rpc.proto has, and the wire has not: " << line;
}

TEST(FunctionRpcProto, CarriesOurOwnMessagesWhereNobodyElseHasAny) {
  const Descriptor& envelope = *rpc::StreamingMessage::descriptor();
  ASSERT_NE(envelope.FindFieldByNumber(100), nullptr);
  ASSERT_NE(envelope.FindFieldByNumber(101), nullptr);
  EXPECT_EQ(envelope.FindFieldByNumber(100)->message_type()->name(), "WorkerSpecialized");
  EXPECT_EQ(envelope.FindFieldByNumber(101)->message_type()->name(), "WorkerSpecializedResponse");
}

TEST(FunctionRpcProto, PeekReadsWhatADecoderReads) {
  rpc::StreamingMessage message;
  message.set_request_id("r1");
  message.mutable_invocation_response()->set_invocation_id("i1");
  message.mutable_invocation_response()->mutable_return_value()->set_int_(-7);
  const std::string bytes = message.SerializeAsString();
  const Result<function_rpc::Peeked> peeked = function_rpc::peek(bytes);
  ASSERT_TRUE(peeked);
  EXPECT_EQ(peeked->content, function_rpc::Content::InvocationResponse);
  EXPECT_EQ(peeked->request_id, "r1");
  EXPECT_EQ(peeked->invocation_id, "i1");
  EXPECT_EQ(peeked->body, message.invocation_response().SerializeAsString());
}

// Every member of the envelope has its name in Content, and composing one gives what a decoder understands.
TEST(FunctionRpcProto, ComposedMessagesAreUnderstood) {
  const Descriptor& envelope = *rpc::StreamingMessage::descriptor();
  const auto* content = envelope.FindOneofByName("content");
  for (int i = 0; i < content->field_count(); ++i) {
    const auto number = static_cast<std::uint32_t>(content->field(i)->number());
    rpc::StreamingMessage message;
    ASSERT_TRUE(message.ParseFromString(function_rpc::compose("r", function_rpc::Content{number}, "")));
    EXPECT_EQ(static_cast<std::uint32_t>(message.content_case()), number);
    EXPECT_EQ(message.request_id(), "r");
  }
}

}  // namespace
}  // namespace windlass
