#include "conformance/runner/examples.h"

#include <algorithm>

#include "conformance/runner/embedded.h"
#include "conformance/runner/hex.h"
#include "protocol/base/big_endian.h"
#include "protocol/base/utf8.h"

namespace windlass::conformance {
namespace {

// In the text, which may be wrong in ways that no tree of values shows. The value of `name` begins with
// `first` and ends with the next `last`.
void replace_member(std::string& envelope, const std::string& name, char first, char last,
                    const json::value& value) {
  const std::string key = '"' + name + "\":";
  const std::size_t at = envelope.find(key);
  const std::size_t begin = envelope.find_first_not_of(' ', at + key.size());
  if (at == std::string::npos || begin == std::string::npos || envelope[begin] != first) return;
  const std::size_t end = envelope.find(last, begin + 1);
  if (end != std::string::npos) envelope.replace(begin, end + 1 - begin, json::serialize(value));
}

std::string message_of(const json::object& file, MessageKind kind, const json::value& tenant,
                       const json::value& sender) {
  if (const auto* const hex = file.if_contains("hex")) return hex_bytes(hex->as_string());
  const auto* const text = file.if_contains("text");
  std::string envelope = text != nullptr ? std::string{text->as_string()} : json::serialize(file.at("frame"));
  const std::string_view pointer = file.at("pointer").as_string();
  if (!pointer.starts_with("/tenant")) replace_member(envelope, "tenant", '"', '"', tenant);
  if (!pointer.starts_with("/sender")) replace_member(envelope, "sender", '{', '}', sender);
  if (kind == MessageKind::Text) return envelope;
  std::string message;
  append_big_endian(message, envelope.size(), 4);
  message += envelope;
  if (const auto* const attached = file.if_contains("attachment")) message += attached->as_string();
  return message;
}

}  // namespace

std::vector<InvalidExample> invalid_examples(const json::array& beginnings, int revision,
                                             const json::value& tenant, const json::value& sender) {
  constexpr std::string_view kFolder = "schema/examples/invalid/";
  constexpr std::string_view kEnding = ".json";
  std::vector<InvalidExample> examples;
  for (const auto& [path, text] : embedded_files()) {
    if (!path.starts_with(kFolder)) continue;
    const std::string name = path.substr(kFolder.size(), path.size() - kFolder.size() - kEnding.size());
    const bool is_named =
        std::any_of(beginnings.begin(), beginnings.end(), [&](const json::value& beginning) {
          return name.starts_with(std::string_view{beginning.as_string()});
        });
    const json::object file = json::parse(text).as_object();
    if (!is_named || file.at("revision") != revision) continue;
    const MessageKind kind = file.contains("kind") ? MessageKind::Binary : MessageKind::Text;
    InvalidExample example{name, std::string{file.at("code").as_string()}, kind,
                           message_of(file, kind, tenant, sender)};
    // What is no JSON has no type.
    example.is_answered =
        example.code == "E.PROTO.JSON" || !(name.starts_with("ack.") || name.starts_with("reset."));
    if (kind == MessageKind::Binary || is_utf8(example.message)) examples.push_back(std::move(example));
  }
  return examples;
}

}  // namespace windlass::conformance
