#include "tests/support/examples.h"

#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "protocol/base/check.h"

namespace windlass::support {
namespace {

std::string text_of(const rapidjson::Value& value) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer{buffer};
  CHECK(value.Accept(writer));
  return {buffer.GetString(), buffer.GetSize()};
}

std::string member(const rapidjson::Document& file, const char* name) {
  if (!file.HasMember(name)) return {};
  return {file[name].GetString(), file[name].GetStringLength()};
}

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 2 <= hex.size(); i += 2) {
    unsigned value = 0;
    CHECK(std::from_chars(hex.data() + i, hex.data() + i + 2, value, 16).ptr == hex.data() + i + 2);
    bytes += static_cast<char>(value);
  }
  return bytes;
}

std::string binary(const std::string& envelope, const std::string& attachment) {
  std::string message;
  for (const unsigned shift : {24U, 16U, 8U, 0U}) message += static_cast<char>(envelope.size() >> shift);
  return message + envelope + attachment;
}

Example read(const std::filesystem::path& path) {
  std::ifstream stream{path, std::ios::binary};
  const std::string text{std::istreambuf_iterator<char>{stream}, {}};
  rapidjson::Document file;
  file.Parse(text.data(), text.size());
  CHECK(!file.HasParseError() && file.IsObject());
  Example example;
  example.name = path.stem().string();
  example.schema = member(file, "schema");
  example.revision = file["revision"].GetInt() == 1 ? Revision::One : Revision::Two;
  example.kind = member(file, "kind") == "binary" ? MessageKind::Binary : MessageKind::Text;
  example.rule = member(file, "rule");
  example.code = member(file, "code");
  example.pointer = member(file, "pointer");
  example.keyword = member(file, "keyword");
  if (file.HasMember("text")) {
    example.message = member(file, "text");
  } else if (file.HasMember("hex")) {
    example.message = from_hex(member(file, "hex"));
  } else {
    CHECK(file.HasMember("frame"));
    example.message = text_of(file["frame"]);
    if (example.kind == MessageKind::Binary) {
      example.message = binary(example.message, member(file, "attachment"));
    }
  }
  return example;
}

std::vector<Example> read_all(const char* folder) {
  std::vector<Example> examples;
  for (const auto& entry : std::filesystem::directory_iterator{std::filesystem::path{WINDLASS_SCHEMA_FOLDER} /
                                                               "examples" / folder}) {
    examples.push_back(read(entry.path()));
  }
  std::sort(examples.begin(), examples.end(),
            [](const Example& a, const Example& b) { return a.name < b.name; });
  CHECK(!examples.empty());
  return examples;
}

}  // namespace

std::vector<Example> valid_examples() {
  return read_all("valid");
}
std::vector<Example> invalid_examples() {
  return read_all("invalid");
}

}  // namespace windlass::support
