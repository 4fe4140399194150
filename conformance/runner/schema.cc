#include "conformance/runner/schema.h"

#include <rapidjson/document.h>

#include <valijson/adapters/rapidjson_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

namespace windlass::conformance {
namespace {

// valijson's adapter for Boost.JSON takes no integer for a number, so its values pass through text.
using Adapter = valijson::adapters::RapidJsonAdapter;

rapidjson::Document tree_of(const json::value& value) {
  rapidjson::Document document;
  const std::string text = json::serialize(value);
  document.Parse(text.data(), text.size());
  return document;
}

// valijson takes integers for int64, so those beyond it (revision 1's bitmaps) would turn negative. Halved,
// in schemas and frames alike, they keep their order.
void halve_large(json::value& value) {
  if (value.is_uint64()) value = value.as_uint64() / 2;
  if (value.is_array()) {
    for (json::value& each : value.as_array()) halve_large(each);
  }
  if (value.is_object()) {
    for (auto& [name, each] : value.as_object()) halve_large(each);
  }
}

std::string last_error(valijson::ValidationResults& results) {
  std::string text = "it breaks its schema";
  valijson::ValidationResults::Error error;
  while (results.popError(error)) {
    std::string where;
    for (const std::string& part : error.context) where += part;
    text = where + ": " + error.description;
  }
  return text;
}

}  // namespace

struct JsonSchema::Inside {
  rapidjson::Document tree;
  valijson::Schema schema;
};

JsonSchema::JsonSchema(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
JsonSchema::~JsonSchema() = default;

Result<std::unique_ptr<JsonSchema>> JsonSchema::parse(const std::string& text) {
  boost::system::error_code wrong;
  json::value value = json::parse(text, wrong);
  if (wrong) return Error{ErrorCode::Internal, Blame::Local, "a schema is not JSON: " + wrong.message()};
  halve_large(value);
  auto inside = std::make_unique<Inside>();
  try {
    valijson::SchemaParser parser{valijson::SchemaParser::kDraft7};
    inside->tree = tree_of(value);
    parser.populateSchema(Adapter{inside->tree}, inside->schema);
  } catch (const std::exception& problem) {
    return Error{ErrorCode::Internal, Blame::Local,
                 std::string{"a schema cannot be used: "} + problem.what()};
  }
  return std::unique_ptr<JsonSchema>{new JsonSchema{std::move(inside)}};
}

std::optional<std::string> JsonSchema::violation(const json::value& value) const {
  json::value halved = value;
  halve_large(halved);
  valijson::Validator validator{valijson::Validator::kStrongTypes};
  valijson::ValidationResults results;
  const rapidjson::Document tree = tree_of(halved);
  if (validator.validate(inside_->schema, Adapter{tree}, &results)) return std::nullopt;
  return last_error(results);
}

Result<std::unique_ptr<WireSchemas>> WireSchemas::parse(const std::map<std::string, std::string>& files) {
  constexpr std::string_view kEnding = ".schema.json";
  auto made = std::make_unique<WireSchemas>();
  for (const auto& [file, text] : files) {
    auto schema = JsonSchema::parse(text);
    if (!schema) return schema.error();
    made->schemas_[file.substr(0, file.size() - kEnding.size())] = std::move(*schema);
  }
  return made;
}

const JsonSchema* WireSchemas::find(const std::string& name, int revision) const {
  if (revision == 1) {
    if (const auto found = schemas_.find(name + ".revision1"); found != schemas_.end())
      return found->second.get();
  }
  const auto found = schemas_.find(name);
  return found == schemas_.end() ? nullptr : found->second.get();
}

const JsonSchema* WireSchemas::payload_schema(std::string_view type, int revision) const {
  constexpr std::string_view kControl = "control.";
  if (!type.starts_with(kControl)) return nullptr;
  const std::string name{type.substr(kControl.size())};
  // Files that are no payload's: a type may have these names, as any that is not known.
  if (name == "envelope" || name.ends_with(".revision1")) return nullptr;
  return find(name, revision);
}

std::optional<std::string> WireSchemas::violation(const json::value& frame, int revision) const {
  if (auto broken = find("envelope", revision)->violation(frame)) return "the envelope, " + *broken;
  const std::string type{frame.at("type").as_string()};
  const JsonSchema* const payload = payload_schema(type, revision);
  if (payload == nullptr) return std::nullopt;
  if (auto broken = payload->violation(frame.at("payload"))) return "the payload of " + type + ", " + *broken;
  return std::nullopt;
}

}  // namespace windlass::conformance
