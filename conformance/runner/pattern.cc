#include "conformance/runner/pattern.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace windlass::conformance {
namespace {

bool is_name_part(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

std::string plain_text(const json::value& value) {
  return value.is_string() ? std::string{value.as_string()} : json::serialize(value);
}

// fill:1000 is a thousand letters.
std::optional<std::string> fill_text(std::string_view name) {
  constexpr std::string_view kFill = "fill:";
  constexpr std::size_t kFillMax = 16U << 20U;
  if (!name.starts_with(kFill)) return std::nullopt;
  std::size_t size = 0;
  std::from_chars(name.data() + kFill.size(), name.data() + name.size(), size);
  return std::string(std::min(size, kFillMax), 'x');
}

json::value substitute_text(std::string_view text, const Variables& variables) {
  if (text.size() > 1 && text[0] == '$' && std::all_of(text.begin() + 1, text.end(), is_name_part)) {
    const auto* const whole = variables.if_contains(text.substr(1));
    return whole == nullptr ? json::value(text) : *whole;
  }
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 == text.size()) {
      out += text[i];
    } else if (text[i + 1] == '$') {
      out += text[i++];
    } else if (const std::size_t end = text.find('}', i); text[i + 1] == '{' && end != text.npos) {
      const std::string_view name = text.substr(i + 2, end - i - 2);
      const auto* const value = variables.if_contains(name);
      if (const auto filling = fill_text(name)) {
        out += *filling;
      } else {
        out += value == nullptr ? std::string{text.substr(i, end - i + 1)} : plain_text(*value);
      }
      i = end;
    } else {
      out += text[i];
    }
  }
  return json::value(out);
}

bool are_numbers(const json::value& a, const json::value* b) {
  return a.is_number() && b != nullptr && b->is_number();
}

bool fits_operator(std::string_view name, const json::value& operand, const json::value* value,
                   Variables& captured) {
  if (name == "$absent") return value == nullptr;
  if (name == "$not") return !fits(operand, value, captured);
  if (name == "$in" || name == "$all") {
    const auto each = [&](const json::value& pattern) { return fits(pattern, value, captured); };
    const auto& patterns = operand.as_array();
    return name == "$in" ? std::any_of(patterns.begin(), patterns.end(), each)
                         : std::all_of(patterns.begin(), patterns.end(), each);
  }
  if (value == nullptr) return false;
  if (name == "$any") return true;
  if (name == "$capture") {
    captured[operand.as_string()] = *value;
    return true;
  }
  if (name == "$prefix" || name == "$contains") {
    if (!value->is_string()) return false;
    const std::string_view text = value->as_string();
    const std::string_view wanted = operand.as_string();
    return name == "$prefix" ? text.starts_with(wanted) : text.find(wanted) != text.npos;
  }
  if (name == "$gte" && are_numbers(operand, value))
    return value->to_number<double>() >= operand.to_number<double>();
  if (name == "$lte" && are_numbers(operand, value))
    return value->to_number<double>() <= operand.to_number<double>();
  return false;
}

}  // namespace

json::value substitute(const json::value& value, const Variables& variables) {
  if (value.is_string()) return substitute_text(value.as_string(), variables);
  if (value.is_array()) {
    json::array out;
    for (const json::value& each : value.as_array()) out.push_back(substitute(each, variables));
    return out;
  }
  if (value.is_object()) {
    json::object out;
    for (const auto& [name, each] : value.as_object()) out[name] = substitute(each, variables);
    return out;
  }
  return value;
}

bool fits(const json::value& pattern, const json::value* value, Variables& captured) {
  if (pattern.is_object()) {
    const json::object& members = pattern.as_object();
    if (members.size() == 1 && members.begin()->key().starts_with("$")) {
      return fits_operator(members.begin()->key(), members.begin()->value(), value, captured);
    }
    if (value == nullptr || !value->is_object()) return false;
    return std::all_of(members.begin(), members.end(), [&](const auto& member) {
      return fits(member.value(), value->as_object().if_contains(member.key()), captured);
    });
  }
  if (value == nullptr) return false;
  if (pattern.is_array()) {
    const auto& wanted = pattern.as_array();
    if (!value->is_array() || value->as_array().size() != wanted.size()) return false;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!fits(wanted[i], &value->as_array()[i], captured)) return false;
    }
    return true;
  }
  return pattern == *value;
}

void merge(json::value& target, const json::value& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = json::object{};
  for (const auto& [name, value] : patch.as_object()) {
    if (value.is_null()) {
      target.as_object().erase(name);
    } else {
      merge(target.as_object()[name], value);
    }
  }
}

}  // namespace windlass::conformance
