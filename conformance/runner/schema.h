// The published JSON Schemas, through valijson: the only knowledge of frames' form that the runner has.
#pragma once

#include <boost/json.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/base/result.h"

namespace windlass::conformance {

namespace json = boost::json;

class JsonSchema final {
 public:
  static Result<std::unique_ptr<JsonSchema>> parse(const std::string& text);
  ~JsonSchema();
  // What is wrong and where, in one sentence; none when it is valid.
  std::optional<std::string> violation(const json::value& value) const;

 private:
  struct Inside;
  explicit JsonSchema(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

// Those of schema/messages by their file name.
class WireSchemas final {
 public:
  static Result<std::unique_ptr<WireSchemas>> parse(const std::map<std::string, std::string>& files);
  // Of a whole frame: its envelope, and its payload by its type.
  std::optional<std::string> violation(const json::value& frame, int revision) const;
  // Whether frames of this type have a schema for their payload.
  bool describes(std::string_view type, int revision) const {
    return payload_schema(type, revision) != nullptr;
  }

 private:
  const JsonSchema* find(const std::string& name, int revision) const;
  const JsonSchema* payload_schema(std::string_view type, int revision) const;
  std::map<std::string, std::unique_ptr<JsonSchema>> schemas_;  // "ack", "ack.revision1", ...
};

}  // namespace windlass::conformance
