#include "scheduler/cli/json_value.h"

#include <simdjson.h>

#include <utility>

#include "protocol/codec/json_writer.h"

namespace windlass::cli {
namespace {

void append_line(std::string& text, std::size_t depth) {
  text += '\n';
  text.append(2 * depth, ' ');
}

// The parser bounds how deep this goes.
void append_pretty(std::string& text, const simdjson::dom::element& value, std::size_t depth) {
  simdjson::dom::object members;
  simdjson::dom::array list;
  const char* separator = "";
  if (value.get_object().get(members) == simdjson::SUCCESS && members.size() > 0) {
    text += '{';
    for (const auto member : members) {
      text += std::exchange(separator, ",");
      append_line(text, depth + 1);
      text += json_text(member.key) + ": ";
      append_pretty(text, member.value, depth + 1);
    }
    append_line(text, depth);
    text += '}';
  } else if (value.get_array().get(list) == simdjson::SUCCESS && list.size() > 0) {
    text += '[';
    for (const simdjson::dom::element each : list) {
      text += std::exchange(separator, ",");
      append_line(text, depth + 1);
      append_pretty(text, each, depth + 1);
    }
    append_line(text, depth);
    text += ']';
  } else {
    text += simdjson::minify(value);
  }
}

}  // namespace

struct Json::Inside {
  std::shared_ptr<simdjson::dom::parser> parser;  // shared by all parts of one document, whose memory it is
  simdjson::dom::element element;

  std::optional<simdjson::dom::element> at(std::string_view pointer) const {
    simdjson::dom::element found;
    if (element.at_pointer(pointer).get(found) != simdjson::SUCCESS) return std::nullopt;
    return found;
  }
};

std::optional<Json> Json::parse(std::string_view text) {
  auto inside = std::make_shared<Inside>();
  inside->parser = std::make_shared<simdjson::dom::parser>();
  const simdjson::padded_string padded{text};
  if (inside->parser->parse(padded).get(inside->element) != simdjson::SUCCESS) return std::nullopt;
  return Json{std::move(inside)};
}

bool Json::is_object() const {
  return inside_->element.is_object();
}

bool Json::has(std::string_view pointer) const {
  return inside_->at(pointer).has_value();
}

std::string Json::text(std::string_view pointer) const {
  const auto found = inside_->at(pointer);
  if (!found) return {};
  std::string_view text;
  if (found->get_string().get(text) == simdjson::SUCCESS) return std::string{text};
  return simdjson::minify(*found);
}

double Json::number(std::string_view pointer) const {
  const auto found = inside_->at(pointer);
  double value = 0;
  if (!found || found->get_double().get(value) != simdjson::SUCCESS) return 0;
  return value;
}

std::string Json::raw(std::string_view pointer) const {
  const auto found = inside_->at(pointer);
  return found ? simdjson::minify(*found) : std::string{};
}

std::vector<Json> Json::list(std::string_view pointer) const {
  const auto found = inside_->at(pointer);
  simdjson::dom::array array;
  std::vector<Json> parts;
  if (!found || found->get_array().get(array) != simdjson::SUCCESS) return parts;
  for (const simdjson::dom::element each : array) {
    parts.push_back(Json{std::make_shared<const Inside>(Inside{inside_->parser, each})});
  }
  return parts;
}

std::vector<std::string> Json::names(std::string_view pointer) const {
  const auto found = inside_->at(pointer);
  simdjson::dom::object members;
  std::vector<std::string> names;
  if (!found || found->get_object().get(members) != simdjson::SUCCESS) return names;
  for (const auto member : members) names.emplace_back(member.key);
  return names;
}

std::string Json::pretty(std::string_view pointer) const {
  const auto found = inside_->at(pointer);
  std::string text;
  if (found) append_pretty(text, *found, 0);
  return text;
}

std::string json_text(std::string_view text) {
  std::string list;
  codec::JsonWriter json{list};
  json.begin();
  json.text("q", text);
  json.end();
  json.finish();
  return list.substr(5, list.size() - 6);
}

}  // namespace windlass::cli
