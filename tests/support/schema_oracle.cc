#include "tests/support/schema_oracle.h"

#include <rapidjson/document.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string_view>
#include <valijson/adapters/rapidjson_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "protocol/base/check.h"
#include "protocol/base/limits.h"

namespace windlass::support {
namespace {

using Json = rapidjson::Value;

std::string_view view(const Json& text) {
  return {text.GetString(), text.GetStringLength()};
}

// One character at a time: this is the opinion, not the implementation.
bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t more = lead < 0x80 ? 0 : lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (lead >= 0x80 && (lead < 0xc2 || lead > 0xf4)) return false;
    if (i + more >= text.size()) return false;
    char32_t point = more == 0 ? lead : lead & (0x3fU >> more);
    for (std::size_t k = 1; k <= more; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xc0U) != 0x80) return false;
      point = point << 6U | (next & 0x3fU);
    }
    const char32_t least = more == 3 ? 0x10000 : more == 2 ? 0x800 : more == 1 ? 0x80 : 0;
    if (point < least || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return false;
    i += more + 1;
  }
  return true;
}

std::size_t end_of_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return std::min(at + 1, text.size());
}

// rapidjson refuses zeros with a large exponent and takes some numbers beyond a double's range for infinity.
// So each number with a fraction or an exponent is rounded here, by the C library, and spelled again in a way
// that rapidjson reads right. What is no number stays as it is. Empty: a number beyond the range.
std::string spelled_again(std::string_view text) {
  static const std::regex number{R"(-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?)"};
  std::string spelled;
  for (std::size_t at = 0; at < text.size();) {
    const bool starts_number = text[at] == '-' || (text[at] >= '0' && text[at] <= '9');
    const std::size_t end = text[at] == '"' ? end_of_string(text, at)
                            : starts_number
                                ? std::min(text.find_first_not_of("+-.0123456789Ee", at), text.size())
                                : at + 1;
    const std::string token{text.substr(at, end - at)};
    at = end;
    if (!starts_number || token.find_first_of(".eE") == std::string::npos ||
        !std::regex_match(token, number)) {
      spelled += token;
      continue;
    }
    const double value = std::strtod(token.c_str(), nullptr);
    if (std::isinf(value)) return {};
    std::array<char, 32> digits{};
    CHECK(std::snprintf(digits.data(), digits.size(), "%.16e", value) > 0);
    spelled += digits.data();
  }
  return spelled;
}

// Sees what a tree of values no longer shows: depth, the digits of integers, escapes that are no character.
struct Grammar : rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Grammar> {
  // A value lies inside at most 32 containers.
  bool is_shallow() const { return depth <= limits::kNestingDepthMax; }
  bool Default() { return is_shallow(); }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    return is_shallow() && is_utf8({text, size});
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) { return is_utf8({text, size}); }
  bool StartObject() { return depth++ <= limits::kNestingDepthMax; }
  bool StartArray() { return depth++ <= limits::kNestingDepthMax; }
  bool EndObject(rapidjson::SizeType) { return depth-- > 0; }
  bool EndArray(rapidjson::SizeType) { return depth-- > 0; }
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    if (!is_shallow()) return false;
    std::string_view digits{text, size};
    if (digits.find_first_of(".eE") != std::string_view::npos) return true;
    const bool negative = digits.starts_with('-');
    if (negative) digits.remove_prefix(1);
    const std::string_view most = negative ? "9223372036854775808" : "18446744073709551615";
    return digits.size() < most.size() || (digits.size() == most.size() && digits <= most);
  }
  std::size_t depth = 0;
};

constexpr unsigned kFlags = rapidjson::kParseValidateEncodingFlag | rapidjson::kParseIterativeFlag |
                            rapidjson::kParseFullPrecisionFlag;

bool has_unique_names(const Json& object) {
  std::set<std::string_view> names;
  return std::all_of(object.MemberBegin(), object.MemberEnd(),
                     [&](const auto& member) { return names.insert(view(member.name)).second; });
}

// Below the opaque places (manifest, and the values of metrics) duplicates are not ours to judge.
bool has_unique_names_below(const Json& value) {
  if (value.IsArray()) return std::all_of(value.Begin(), value.End(), has_unique_names_below);
  if (!value.IsObject()) return true;
  if (!has_unique_names(value)) return false;
  return std::all_of(value.MemberBegin(), value.MemberEnd(), [](const auto& member) {
    if (view(member.name) == "manifest") return true;
    if (view(member.name) == "metrics") return !member.value.IsObject() || has_unique_names(member.value);
    return has_unique_names_below(member.value);
  });
}

// valijson takes integers for int64, so the ones beyond it would turn negative. Halved, in schemas and frames
// alike, they stay integers and keep their order among all bounds the schemas have.
void halve_beyond_int64(Json& node) {
  if (node.IsUint64() && !node.IsInt64()) node.SetUint64(node.GetUint64() / 2);
  if (node.IsArray()) {
    for (Json& item : node.GetArray()) halve_beyond_int64(item);
  }
  if (node.IsObject()) {
    std::for_each(node.MemberBegin(), node.MemberEnd(),
                  [](auto& member) { halve_beyond_int64(member.value); });
  }
}

// valijson counts the characters of a string up to its first NUL. U+0001 is as long, and like NUL no pattern
// and no enumeration of the schemas has it.
void replace_nul(Json& node, rapidjson::Document::AllocatorType& allocator) {
  if (node.IsString() && view(node).find('\0') != std::string_view::npos) {
    std::string text{view(node)};
    std::replace(text.begin(), text.end(), '\0', '\1');
    node.SetString(text.data(), static_cast<rapidjson::SizeType>(text.size()), allocator);
  }
  if (node.IsArray()) {
    for (Json& item : node.GetArray()) replace_nul(item, allocator);
  }
  if (node.IsObject()) {
    std::for_each(node.MemberBegin(), node.MemberEnd(), [&](auto& member) {
      replace_nul(member.name, allocator);
      replace_nul(member.value, allocator);
    });
  }
}

void remove_patterns(Json& node) {
  if (node.IsArray()) {
    for (Json& item : node.GetArray()) remove_patterns(item);
  }
  if (!node.IsObject()) return;
  if (node.HasMember("pattern") && node["pattern"].IsString() && !node.HasMember("if") &&
      view(node["pattern"]) != "^control\\.") {
    node.RemoveMember("pattern");
  }
  std::for_each(node.MemberBegin(), node.MemberEnd(), [](auto& member) { remove_patterns(member.value); });
}

struct Message {
  BytesView envelope;
  BytesView attachment;
};

}  // namespace

struct SchemaOracle::Impl {
  explicit Impl(Patterns patterns) {
    const std::filesystem::path folder = std::filesystem::path{WINDLASS_SCHEMA_FOLDER} / "messages";
    for (const auto& entry : std::filesystem::directory_iterator{folder}) load(entry.path(), patterns);
  }

  void load(const std::filesystem::path& path, Patterns patterns) {
    std::ifstream stream{path, std::ios::binary};
    const std::string text{std::istreambuf_iterator<char>{stream}, {}};
    rapidjson::Document& file = files.emplace_back();
    file.Parse(text.data(), text.size());
    CHECK(!file.HasParseError());
    if (patterns == Patterns::Skip) remove_patterns(file);
    halve_beyond_int64(file);
    std::string name = path.filename().string();
    name.resize(name.size() - std::string_view{".schema.json"}.size());
    valijson::SchemaParser parser{valijson::SchemaParser::kDraft7};
    parser.populateSchema(valijson::adapters::RapidJsonAdapter{file}, schemas[name]);
  }

  bool is_valid(const Json& value, const std::string& schema, Revision revision) {
    const auto one = schemas.find(schema + ".revision1");
    const valijson::Schema& rules =
        revision == Revision::One && one != schemas.end() ? one->second : schemas.at(schema);
    return validator.validate(rules, valijson::adapters::RapidJsonAdapter{value}, nullptr);
  }

  bool parse(BytesView text) {
    const std::string spelled = spelled_again(text);
    rapidjson::MemoryStream for_grammar{spelled.data(), spelled.size()};
    Grammar grammar;
    rapidjson::Reader reader;
    if (reader.Parse<kFlags | rapidjson::kParseNumbersAsStringsFlag>(for_grammar, grammar).IsError())
      return false;
    rapidjson::MemoryStream stream{spelled.data(), spelled.size()};
    document = rapidjson::Document{};
    document.ParseStream<kFlags>(stream);
    if (document.HasParseError() || stream.Tell() != spelled.size()) return false;
    halve_beyond_int64(document);
    return true;
  }

  std::string type() const {
    if (!document.IsObject() || !document.HasMember("type") || !document["type"].IsString()) return {};
    return std::string{view(document["type"])};
  }

  // The schema of the payload; empty: none.
  std::string payload_schema() const {
    constexpr std::string_view kControl = "control.";
    const std::string whole = type();
    if (!whole.starts_with(kControl)) return {};
    const std::string name = whole.substr(kControl.size());
    return schemas.contains(name) && name != "envelope" && !name.ends_with(".revision1") ? name
                                                                                         : std::string{};
  }

  bool validate(Revision revision) {
    if (!is_valid(document, "envelope", revision)) return false;
    const std::string schema = payload_schema();
    return schema.empty() || is_valid(document["payload"], schema, revision);
  }

  bool has_unique_keys(bool has_opaque_payload) const {
    if (!document.IsObject() || !has_unique_names(document)) return false;
    return std::all_of(document.MemberBegin(), document.MemberEnd(), [&](const auto& member) {
      if (view(member.name) == "ext") return true;
      if (view(member.name) == "payload" && has_opaque_payload) return true;
      return has_unique_names_below(member.value);
    });
  }

  bool fits(const Message& message, MessageKind kind) const {
    if (!document.HasMember("attachment")) return kind == MessageKind::Text;
    return kind == MessageKind::Binary &&
           document["attachment"]["bytes"].GetUint64() == message.attachment.size();
  }

  bool accepts_as(const Message& message, MessageKind kind, Revision revision) {
    if (revision == Revision::One && kind == MessageKind::Binary) return false;
    return validate(revision) && fits(message, kind);
  }

  // The revision that a handshake names, if it is a number that could be one.
  std::optional<std::uint64_t> protocol() const {
    if (type() != "control.handshake" || !document.HasMember("payload")) return std::nullopt;
    const Json& payload = document["payload"];
    if (!payload.IsObject() || !payload.HasMember("protocol")) return std::nullopt;
    const Json& number = payload["protocol"];
    if (!number.IsUint64() || number.GetUint64() > limits::kIntegerMax) return std::nullopt;
    return number.GetUint64();
  }

  bool is_unspoken() const {
    const std::optional<std::uint64_t> named = protocol();
    return named && named != 1U && named != 2U;
  }

  bool accepts_first(const Message& message, MessageKind kind) {
    if (is_unspoken()) return is_valid(document, "envelope", Revision::Two) && fits(message, kind);
    if (type() == "control.handshake") {
      return accepts_as(message, kind, protocol() == 1U ? Revision::One : Revision::Two);
    }
    return accepts_as(message, kind, Revision::Two) || accepts_as(message, kind, Revision::One);
  }

  std::optional<ErrorCode> refusal(BytesView bytes, MessageKind kind, Expect expect) {
    if (bytes.size() > limits::kFrameBytesMax) return ErrorCode::LimitFrame;
    Message message{bytes, {}};
    if (kind == MessageKind::Binary) {
      if (bytes.size() < 4) return ErrorCode::ProtoJson;
      std::uint64_t length = 0;
      for (std::size_t i = 0; i < 4; ++i) length = length * 256 + static_cast<unsigned char>(bytes[i]);
      if (length > bytes.size() - 4) return ErrorCode::ProtoJson;
      message = {bytes.substr(4, length), bytes.substr(4 + length)};
    }
    if (!parse(message.envelope)) return ErrorCode::ProtoJson;
    const bool has_opaque_payload = payload_schema().empty() || (expect == Expect::Any && is_unspoken());
    if (!has_unique_keys(has_opaque_payload)) return ErrorCode::ProtoSchema;
    replace_nul(document, document.GetAllocator());
    const bool accepts = expect == Expect::Any           ? accepts_first(message, kind)
                         : expect == Expect::RevisionOne ? accepts_as(message, kind, Revision::One)
                                                         : accepts_as(message, kind, Revision::Two);
    return accepts ? std::nullopt : std::optional{ErrorCode::ProtoSchema};
  }

  std::vector<rapidjson::Document> files;
  std::map<std::string, valijson::Schema> schemas;
  valijson::Validator validator{valijson::Validator::kStrongTypes};
  rapidjson::Document document;
};

SchemaOracle::SchemaOracle(Patterns patterns) : impl_(std::make_unique<Impl>(patterns)) {}
SchemaOracle::~SchemaOracle() = default;

std::optional<ErrorCode> SchemaOracle::refusal(BytesView message, MessageKind kind, Expect expect) {
  return impl_->refusal(message, kind, expect);
}
bool SchemaOracle::parse(BytesView text) {
  return impl_->parse(text);
}
bool SchemaOracle::validate() {
  return impl_->validate(Revision::Two);
}

}  // namespace windlass::support
