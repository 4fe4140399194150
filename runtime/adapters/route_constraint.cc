#include "runtime/adapters/route_constraint.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "runtime/adapters/http_asked.h"

namespace windlass::runtime {
namespace {

constexpr std::int64_t kPatternMemoryMax = 1 << 20;  // of one compiled regex

Error bad_constraint(std::string_view whole, std::string_view why) {
  return {ErrorCode::ProtoSchema, Blame::Peer,
          "the route part '" + std::string{whole} + "' " + std::string{why}};
}

std::optional<long long> whole_number(std::string_view text) {
  long long value = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

bool is_real_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

bool is_guid(std::string_view text) {
  if (text.size() == 38 && text.front() == '{' && text.back() == '}') text = text.substr(1, 36);
  const bool is_plain = text.size() == 32;
  if (!is_plain && text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_dash = !is_plain && (i == 8 || i == 13 || i == 18 || i == 23);
    if (is_dash ? text[i] != '-' : std::isxdigit(static_cast<unsigned char>(text[i])) == 0) return false;
  }
  return true;
}

// How many arguments each takes.
struct KnownConstraint {
  std::string_view name;
  std::size_t least;
  std::size_t most;
};
constexpr std::array<KnownConstraint, 16> kConstraints = {{{"int", 0, 0},
                                                           {"long", 0, 0},
                                                           {"bool", 0, 0},
                                                           {"guid", 0, 0},
                                                           {"alpha", 0, 0},
                                                           {"datetime", 0, 0},
                                                           {"float", 0, 0},
                                                           {"double", 0, 0},
                                                           {"decimal", 0, 0},
                                                           {"required", 0, 0},
                                                           {"length", 1, 2},
                                                           {"minlength", 1, 1},
                                                           {"maxlength", 1, 1},
                                                           {"min", 1, 1},
                                                           {"max", 1, 1},
                                                           {"range", 2, 2}}};

// As .NET has them: without regard to case, found anywhere in the value.
Result<std::shared_ptr<const re2::RE2>> compile(std::string_view pattern, std::string_view whole) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_case_sensitive(false);
  options.set_max_mem(kPatternMemoryMax);
  auto compiled = std::make_shared<const re2::RE2>(re2::StringPiece{pattern.data(), pattern.size()}, options);
  if (!compiled->ok()) {
    return bad_constraint(whole, "has a regular expression that RE2 does not accept: " + compiled->error());
  }
  return compiled;
}

bool is_day(int year, unsigned month, unsigned day) {
  namespace chrono = std::chrono;
  return year >= 1 && chrono::year_month_day{chrono::year{year}, chrono::month{month}, chrono::day{day}}.ok();
}

// 13: there is none of this name.
unsigned month_of(std::string_view name) {
  constexpr std::array<std::string_view, 12> kNames = {"january",   "february", "march",    "april",
                                                       "may",       "june",     "july",     "august",
                                                       "september", "october",  "november", "december"};
  const std::string said = in_lower_case(name);
  const auto* const found = std::ranges::find_if(
      kNames, [&](std::string_view each) { return said == each || said == each.substr(0, 3); });
  return static_cast<unsigned>(found - kNames.begin() + 1);
}

// Takes a date from the front of `text`.
bool take_date(re2::StringPiece& text) {
  static const re2::RE2 kYearFirst{R"((\d{4})([-/.])(\d{1,2})([-/.])(\d{1,2}))"};
  static const re2::RE2 kMonthFirst{R"((\d{1,2})([-/.])(\d{1,2})([-/.])(\d{4}))"};
  static const re2::RE2 kDayAndName{
      R"((?i)(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?, )?(\d{1,2})[ -]([a-z]+)[ -](\d{4}))"};
  static const re2::RE2 kNameAndDay{R"((?i)([a-z]+) (\d{1,2}),? (\d{4}))"};
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  std::string name;
  std::string one;
  std::string other;
  if (re2::RE2::Consume(&text, kYearFirst, &year, &one, &month, &other, &day) ||
      re2::RE2::Consume(&text, kMonthFirst, &month, &one, &day, &other, &year)) {
    return one == other && is_day(year, month, day);
  }
  if (re2::RE2::Consume(&text, kDayAndName, &day, &name, &year) ||
      re2::RE2::Consume(&text, kNameAndDay, &name, &day, &year)) {
    return is_day(year, month_of(name), day);
  }
  return false;
}

bool is_time(const re2::StringPiece& text) {
  static const re2::RE2 kTime{
      R"((?i)(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d{1,9})?)?( ?[ap]m)?( ?(?:z|gmt|[+-]\d{2}(?::?\d{2})?))?)"};
  int hour = 0;
  int minute = 0;
  std::string second;
  std::string half;
  if (!re2::RE2::FullMatch(text, kTime, &hour, &minute, &second, &half)) return false;
  const bool is_hour = half.empty() ? hour < 24 : hour >= 1 && hour <= 12;
  return is_hour && minute < 60 && whole_number(second).value_or(0) < 60;
}

}  // namespace

bool is_date_time(std::string_view value) {
  re2::StringPiece text{value.data(), value.size()};
  if (is_time(text)) return true;
  if (!take_date(text)) return false;
  if (text.empty()) return true;
  if (text[0] != 'T' && text[0] != 't' && text[0] != ' ') return false;
  text.remove_prefix(1);
  return is_time(text);
}

Result<RouteConstraint> RouteConstraint::parse(std::string_view text, std::string_view whole) {
  RouteConstraint constraint;
  const std::size_t open = text.find('(');
  constraint.name_ = in_lower_case(text.substr(0, open));
  std::vector<std::string_view> arguments;
  if (open != std::string_view::npos) {
    if (!text.ends_with(')')) return bad_constraint(whole, "has a constraint without its closing bracket");
    std::string_view rest = text.substr(open + 1, text.size() - open - 2);
    if (constraint.name_ == "regex") {
      auto compiled = compile(rest, whole);
      if (!compiled) return compiled.error();
      constraint.pattern_ = *std::move(compiled);
      return constraint;
    }
    while (true) {
      const std::size_t comma = rest.find(',');
      std::string_view argument = rest.substr(0, comma);
      while (argument.starts_with(' ')) argument.remove_prefix(1);
      arguments.push_back(argument);
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  const auto* const known = std::ranges::find(kConstraints, constraint.name_, &KnownConstraint::name);
  if (known == kConstraints.end() && constraint.name_ != "regex") {
    return bad_constraint(
        whole,
        "has a constraint that is not known here; known are int, long, bool, guid, alpha, datetime, float, "
        "double, decimal, required, length, minlength, maxlength, min, max, range and regex");
  }
  for (const std::string_view each : arguments) {
    if (const auto number = whole_number(each)) constraint.arguments_.push_back(*number);
  }
  const bool is_good = known != kConstraints.end() && constraint.arguments_.size() == arguments.size() &&
                       arguments.size() >= known->least && arguments.size() <= known->most;
  if (!is_good) return bad_constraint(whole, "has a constraint with wrong arguments");
  return constraint;
}

bool RouteConstraint::is_met(std::string_view value) const {
  if (pattern_) return re2::RE2::PartialMatch(re2::StringPiece{value.data(), value.size()}, *pattern_);
  const std::string& name = name_;
  const auto size = static_cast<long long>(value.size());
  const auto number = whole_number(value);
  if (name == "int") return number && *number >= INT32_MIN && *number <= INT32_MAX;
  if (name == "long") return number.has_value();
  if (name == "bool") return in_lower_case(value) == "true" || in_lower_case(value) == "false";
  if (name == "guid") return is_guid(value);
  if (name == "alpha") {
    return std::ranges::all_of(value,
                               [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
  }
  if (name == "datetime") return is_date_time(value);
  if (name == "float" || name == "double" || name == "decimal") return is_real_number(value);
  if (name == "required") return !value.empty();
  if (name == "length") {
    return arguments_.size() == 1 ? size == arguments_[0] : size >= arguments_[0] && size <= arguments_[1];
  }
  if (name == "minlength") return size >= arguments_[0];
  if (name == "maxlength") return size <= arguments_[0];
  if (name == "min") return number && *number >= arguments_[0];
  if (name == "max") return number && *number <= arguments_[0];
  return number && *number >= arguments_[0] && *number <= arguments_[1];
}

}  // namespace windlass::runtime
