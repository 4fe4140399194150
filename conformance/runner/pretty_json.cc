#include "conformance/runner/pretty_json.h"

#include <simdjson.h>

#include <optional>
#include <vector>

namespace windlass::conformance {
namespace {

// Deeper than any frame the schemas allow. It bounds the indentation that a hostile peer can make us write.
constexpr std::size_t kPrettyDepthMax = 64;

bool is_json(std::string_view text, std::size_t depth_max) {
  simdjson::dom::parser parser;
  if (parser.allocate(text.size() + 1, depth_max) != simdjson::SUCCESS) return false;
  simdjson::dom::element root;
  return parser.parse(text.data(), text.size()).get(root) == simdjson::SUCCESS;
}

// With one space after each colon and comma, as it looks on one line; and where each bracket's partner is.
struct SpacedJson {
  std::string text;
  std::vector<std::size_t> partners;  // by position of the opening bracket in `text`, 0 elsewhere
};

// Of valid JSON.
SpacedJson spaced(std::string_view json) {
  SpacedJson result;
  std::vector<std::size_t> open;
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted) {
      result.text += c;
      if (c == '\\') result.text += json[++i];
      if (c == '"') quoted = false;
      continue;
    }
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') continue;
    quoted = c == '"';
    if (c == '{' || c == '[') open.push_back(result.text.size());
    if (c == '}' || c == ']') {
      pairs.emplace_back(open.back(), result.text.size());
      open.pop_back();
    }
    result.text += c;
    if (c == ':' || c == ',') result.text += ' ';
  }
  result.partners.resize(result.text.size());
  for (const auto& [from, to] : pairs) result.partners[from] = to;
  return result;
}

std::string broken(const SpacedJson& json, std::size_t columns) {
  std::string out;
  std::size_t depth = 0;
  std::size_t line_begin = 0;
  const auto new_line = [&] {
    out += '\n';
    line_begin = out.size();
    out.append(2 * depth, ' ');
  };
  bool quoted = false;
  const std::string& text = json.text;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      out += c;
      if (c == '\\') out += text[++i];
      if (c == '"') quoted = false;
    } else if (c == '{' || c == '[') {
      const std::size_t size = json.partners[i] - i + 1;
      if (size == 2 || out.size() - line_begin + size < columns) {
        out.append(text, i, size);
        i += size - 1;
        continue;
      }
      out += c;
      ++depth;
      new_line();
    } else if (c == '}' || c == ']') {
      --depth;
      new_line();
      out += c;
    } else if (c == ',') {
      out += c;
      ++i;  // its space
      new_line();
    } else {
      quoted = c == '"';
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string pretty_json(std::string_view text, std::size_t columns) {
  if (!is_json(text, kPrettyDepthMax)) return std::string{text};
  return broken(spaced(text), columns);
}

std::string type_of_frame(std::string_view text) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  std::string_view type;
  if (parser.parse(text.data(), text.size()).get(root) != simdjson::SUCCESS) return {};
  if (root["type"].get_string().get(type) != simdjson::SUCCESS) return {};
  return std::string{type};
}

}  // namespace windlass::conformance
