#include "conformance/runner/message.h"

#include <simdjson.h>

#include <set>
#include <string>

#include "protocol/base/big_endian.h"

namespace windlass::conformance {
namespace {

constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kShownMax = 2000;  // of a wrong message, in a report

Error not_json(std::string reason) {
  return {ErrorCode::ProtoJson, Blame::Peer, std::move(reason)};
}

Error not_as_described(const std::string& what, std::string_view envelope) {
  return {ErrorCode::ProtoSchema, Blame::Peer, what + ", in " + std::string{envelope.substr(0, kShownMax)}};
}

// A tree of values has each key once, so the text is asked. Manifests and the values of metrics are opaque.
std::optional<std::string> repeated_key(simdjson::dom::element value) {
  if (simdjson::dom::array items; value.get_array().get(items) == simdjson::SUCCESS) {
    for (const simdjson::dom::element item : items) {
      if (auto found = repeated_key(item)) return found;
    }
  }
  simdjson::dom::object members;
  if (value.get_object().get(members) != simdjson::SUCCESS) return std::nullopt;
  std::set<std::string_view> names;
  for (const auto& [name, member] : members) {
    if (!names.insert(name).second) return std::string{name};
    if (name == "manifest") continue;
    simdjson::dom::object metrics;
    if (name == "metrics" && member.get_object().get(metrics) == simdjson::SUCCESS) {
      std::set<std::string_view> of_metrics;
      for (const auto& metric : metrics) {
        if (!of_metrics.insert(metric.key).second) return std::string{metric.key};
      }
      continue;
    }
    if (auto found = repeated_key(member)) return found;
  }
  return std::nullopt;
}

// Extensions and payloads without a schema are their owners'.
std::optional<std::string> repeated_key_of_frame(simdjson::dom::object frame, bool has_payload_schema) {
  std::set<std::string_view> names;
  for (const auto& [name, member] : frame) {
    if (!names.insert(name).second) return std::string{name};
    if (name == "ext" || (name == "payload" && !has_payload_schema)) continue;
    if (auto found = repeated_key(member)) return found;
  }
  return std::nullopt;
}

std::optional<std::string> wrong_attachment(const json::object& frame, const MessageParts& parts,
                                            int revision) {
  const auto* const said = frame.if_contains("attachment");
  if (!parts.attached) {
    return said == nullptr ? std::nullopt : std::optional{"an attachment in a text message"};
  }
  if (revision == 1) return "a binary message, which revision 1 does not have";
  if (said == nullptr) return "a binary message whose envelope has no attachment";
  if (said->at("bytes").to_number<std::uint64_t>() != parts.attached->size()) {
    return "attachment.bytes is not the number of bytes behind the envelope";
  }
  return std::nullopt;
}

}  // namespace

Result<MessageParts> parts_of(BytesView message, MessageKind kind) {
  if (kind == MessageKind::Text) return MessageParts{message, std::nullopt};
  const bool has_length = message.size() >= kLengthBytes;
  const std::uint64_t length = has_length ? big_endian(message.substr(0, kLengthBytes)) : 0;
  if (!has_length || length > message.size() - kLengthBytes) {
    return not_json("a binary message without a whole envelope");
  }
  return MessageParts{message.substr(kLengthBytes, length), message.substr(kLengthBytes + length)};
}

Result<json::object> read_frame(const MessageParts& parts, const WireSchemas& schemas, int revision) {
  boost::system::error_code wrong;
  json::value value = json::parse(parts.envelope, wrong);
  simdjson::dom::parser parser;
  simdjson::dom::element text;
  // Boost.JSON takes numbers of any size, simdjson those of schema/README.md.
  if (wrong || parser.parse(parts.envelope.data(), parts.envelope.size()).get(text) != simdjson::SUCCESS) {
    return not_json("a message that is no JSON object");
  }
  simdjson::dom::object members;
  if (!value.is_object() || text.get_object().get(members) != simdjson::SUCCESS) {
    return not_as_described("a message that is no JSON object", parts.envelope);
  }
  if (const auto broken = schemas.violation(value, revision)) {
    return not_as_described(*broken, parts.envelope);
  }
  json::object& frame = value.as_object();
  const bool has_payload_schema = schemas.describes(frame.at("type").as_string(), revision);
  if (const auto name = repeated_key_of_frame(members, has_payload_schema)) {
    return not_as_described("the key " + *name + " occurs twice", parts.envelope);
  }
  if (const auto broken = wrong_attachment(frame, parts, revision)) {
    return not_as_described(*broken, parts.envelope);
  }
  return std::move(frame);
}

}  // namespace windlass::conformance
