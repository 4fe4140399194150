#include "conformance/runner/report_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "protocol/base/utf8.h"

namespace windlass::conformance {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

std::uint32_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

// How many bytes the character that begins with this byte has.
std::size_t character_size(std::uint32_t lead) {
  if (lead < 0x80U) return 1;
  if (lead < 0xE0U) return 2;
  return lead < 0xF0U ? 3 : 4;
}

// Of one valid character.
std::uint32_t code_point(std::string_view character) {
  const std::uint32_t lead = byte_at(character, 0);
  if (character.size() == 1) return lead;
  std::uint32_t point = lead & (0x7FU >> character.size());
  for (std::size_t i = 1; i < character.size(); ++i) {
    point = (point << 6U) | (byte_at(character, i) & 0x3FU);
  }
  return point;
}

bool is_misleading(std::uint32_t point) {
  const auto within = [point](std::uint32_t first, std::uint32_t last) {
    return point >= first && point <= last;
  };
  return within(0x80, 0x9F) ||                                // control characters of ISO 8859
         within(0x200B, 0x200F) || point == 0xFEFF ||         // no width, or a direction mark
         within(0x2028, 0x202E) || within(0x2060, 0x206F) ||  // line ends that are none, embeddings, isolates
         within(0xE0000, 0xE007F) ||                          // tags: text nobody sees
         (point & 0xFFFEU) == 0xFFFEU;                        // no characters, and not allowed in XML
}

std::string code_point_name(std::uint32_t point) {
  std::array<char, 16> name{};
  std::snprintf(name.data(), name.size(), "[U+%04X]", point);
  return name.data();
}

// The picture of a control character below 0x20: U+2400 and on.
std::string control_picture(std::uint32_t point) {
  return std::string{"\xE2\x90"} + static_cast<char>(0x80U + (point == 0x7FU ? 0x21U : point));
}

}  // namespace

std::string clean_utf8(std::string_view text) {
  if (is_utf8(text)) return std::string{text};
  std::string clean;
  while (!text.empty()) {
    const std::string_view character = text.substr(0, character_size(byte_at(text, 0)));
    const bool valid = is_utf8(character);
    clean += valid ? character : kReplacement;
    text.remove_prefix(valid ? character.size() : 1);
  }
  return clean;
}

std::string visible(std::string_view text) {
  const std::string clean = clean_utf8(text);
  std::string shown;
  shown.reserve(clean.size());
  for (std::size_t at = 0; at < clean.size();) {
    const std::string_view character = std::string_view{clean}.substr(at, character_size(byte_at(clean, at)));
    at += character.size();
    const std::uint32_t point = code_point(character);
    const bool is_layout = point == '\n' || point == '\t';
    if (!is_layout && (point < 0x20U || point == 0x7FU)) {
      shown += control_picture(point);
    } else if (is_misleading(point)) {
      shown += code_point_name(point);
    } else {
      shown += character;
    }
  }
  return shown;
}

std::string one_line(std::string_view text, std::size_t columns) {
  std::string line = visible(text);
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  if (text_columns(line) <= columns) return line;
  if (columns == 0) return {};
  std::size_t end = 0;
  for (std::size_t shown = 0; shown + 1 < columns; ++shown) end += character_size(byte_at(line, end));
  return line.substr(0, end) + "…";
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : visible(text)) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string json_string(std::string_view text) {
  std::string json{'"'};
  for (const char c : clean_utf8(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (c == '\n') {
      json += "\\n";
    } else if (byte < 0x20U || byte == 0x7FU || c == '<') {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(byte));
      json += escape.data();
    } else {
      json += c;
    }
  }
  return json += '"';
}

std::string json_number(double value) {
  if (!std::isfinite(value) || std::abs(value) > 1e15) return "0";
  std::array<char, 40> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed, 3).ptr;
  std::string number{digits.data(), end};
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  return number == "-0" ? "0" : number;
}

std::string duration_text(double milliseconds) {
  if (!std::isfinite(milliseconds) || milliseconds < 0 || milliseconds > 1e15) return "0 ms";
  std::array<char, 40> text{};
  if (milliseconds < 999.5) {
    std::snprintf(text.data(), text.size(), "%.0f ms", milliseconds);
  } else if (milliseconds < 59'995) {
    std::snprintf(text.data(), text.size(), "%.2f s", milliseconds / 1000);
  } else {
    const long long seconds = std::llround(milliseconds / 1000);
    std::snprintf(text.data(), text.size(), "%lld min %lld s", seconds / 60, seconds % 60);
  }
  return text.data();
}

std::size_t text_columns(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace windlass::conformance
