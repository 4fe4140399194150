#include "runtime/adapters/http_routes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace windlass::runtime {
namespace {

constexpr std::size_t kSegmentsMax = 64;

Error bad_route(std::string_view text, std::string_view why) {
  return {ErrorCode::ProtoSchema, Blame::Peer,
          "the route part '" + std::string{text} + "' " + std::string{why}};
}

char lower_char(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

bool same_char(char one, char other) {
  return lower_char(one) == lower_char(other);
}

bool same_text(std::string_view one, std::string_view other) {
  return std::ranges::equal(one, other, same_char);
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
constexpr std::array<KnownConstraint, 15> kConstraints = {{{"int", 0, 0},
                                                           {"long", 0, 0},
                                                           {"bool", 0, 0},
                                                           {"guid", 0, 0},
                                                           {"alpha", 0, 0},
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

}  // namespace

Result<Route::Constraint> Route::parse_constraint(std::string_view text) {
  Constraint constraint;
  const std::size_t open = text.find('(');
  constraint.name = text.substr(0, open);
  std::ranges::transform(constraint.name, constraint.name.begin(), lower_char);
  if (open != std::string_view::npos) {
    if (!text.ends_with(')')) return bad_route(text, "has a constraint without its closing bracket");
    std::string_view rest = text.substr(open + 1, text.size() - open - 2);
    while (true) {
      const std::size_t comma = rest.find(',');
      std::string_view argument = rest.substr(0, comma);
      while (argument.starts_with(' ')) argument.remove_prefix(1);
      constraint.arguments.emplace_back(argument);
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  const auto* const known = std::ranges::find(kConstraints, constraint.name, &KnownConstraint::name);
  if (known == kConstraints.end()) {
    return bad_route(text,
                     "has a constraint that is not known here; known are int, long, bool, guid, alpha, "
                     "float, double, decimal, length, minlength, maxlength, min, max and range");
  }
  if (constraint.arguments.size() < known->least || constraint.arguments.size() > known->most ||
      !std::ranges::all_of(constraint.arguments,
                           [](const auto& each) { return whole_number(each).has_value(); })) {
    return bad_route(text, "has a constraint with wrong arguments");
  }
  return constraint;
}

Result<Route::Part> Route::parse_param(std::string_view text, Segment& segment) {
  const std::string_view whole = text;
  Part part{.text = {}, .is_param = true};
  if (text.starts_with('*')) {
    segment.is_rest = true;
    text.remove_prefix(text.starts_with("**") ? 2 : 1);
  }
  if (text.ends_with('?')) {
    segment.is_optional = true;
    text.remove_suffix(1);
  }
  if (const std::size_t equal = text.find('='); equal != std::string_view::npos) {
    segment.fallback = text.substr(equal + 1);
    text = text.substr(0, equal);
  }
  std::size_t colon = text.find(':');
  part.text = text.substr(0, colon);
  while (colon != std::string_view::npos) {
    text.remove_prefix(colon + 1);
    colon = text.find(':');
    Result<Constraint> constraint = parse_constraint(text.substr(0, colon));
    if (!constraint) return constraint.error();
    part.constraints.push_back(*std::move(constraint));
  }
  if (part.text.empty()) return bad_route(whole, "has no name");
  return part;
}

Result<Route::Segment> Route::parse_segment(std::string_view text) {
  const std::string_view whole = text;
  Segment segment;
  while (!text.empty()) {
    if (text.front() == '}') return bad_route(whole, "closes a bracket that it did not open");
    if (text.front() != '{') {
      const std::size_t end = std::min(text.find_first_of("{}"), text.size());
      segment.parts.push_back({.text = std::string{text.substr(0, end)}});
      text.remove_prefix(end);
      continue;
    }
    const std::size_t end = text.find('}');
    if (end == std::string_view::npos) return bad_route(whole, "opens a bracket and does not close it");
    if (!segment.parts.empty() && segment.parts.back().is_param) {
      return bad_route(whole, "has two parameters with nothing between them");
    }
    Result<Part> part = parse_param(text.substr(1, end - 1), segment);
    if (!part) return part.error();
    segment.parts.push_back(*std::move(part));
    text.remove_prefix(end + 1);
  }
  const bool is_whole = segment.parts.size() == 1;
  if (!is_whole && (segment.is_rest || segment.is_optional || segment.fallback)) {
    return bad_route(whole, "may be optional or the rest only as a whole segment");
  }
  return segment;
}

Result<Route> Route::parse(std::string_view text) {
  while (text.starts_with('/')) text.remove_prefix(1);
  while (text.ends_with('/')) text.remove_suffix(1);
  Route route;
  while (!text.empty()) {
    // A slash inside a bracket is part of it.
    std::size_t end = 0;
    for (bool is_inside = false; end < text.size() && (is_inside || text[end] != '/'); ++end) {
      if (text[end] == '{') is_inside = true;
      if (text[end] == '}') is_inside = false;
    }
    Result<Segment> segment = parse_segment(text.substr(0, end));
    if (!segment) return segment.error();
    if (!route.segments_.empty()) {
      const Segment& before = route.segments_.back();
      if (before.is_rest) return bad_route(text, "comes after a part that takes all the rest");
      const bool may_be_missing = segment->is_optional || segment->is_rest || segment->fallback;
      if ((before.is_optional || before.fallback) && !may_be_missing) {
        return bad_route(text, "comes after one that may be missing, and may not");
      }
    }
    route.segments_.push_back(*std::move(segment));
    if (route.segments_.size() > kSegmentsMax) return bad_route(text, "is one of too many");
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  // Literal before mixed before constrained before free before the rest; so for each segment.
  for (const Segment& each : route.segments_) {
    const bool is_literal = each.parts.size() == 1 && !each.parts.front().is_param;
    const bool is_constrained = !each.parts.front().constraints.empty();
    route.rank_ += is_literal              ? '0'
                   : each.parts.size() > 1 ? '1'
                   : each.is_rest          ? '4'
                   : is_constrained        ? '2'
                                           : '3';
  }
  return route;
}

bool Route::is_met(const Constraint& constraint, std::string_view value) {
  const std::string& name = constraint.name;
  const auto argument = [&](std::size_t i) { return whole_number(constraint.arguments[i]).value_or(0); };
  const auto size = static_cast<long long>(value.size());
  const auto number = whole_number(value);
  if (name == "int") return number && *number >= INT32_MIN && *number <= INT32_MAX;
  if (name == "long") return number.has_value();
  if (name == "bool") return same_text(value, "true") || same_text(value, "false");
  if (name == "guid") return is_guid(value);
  if (name == "alpha") {
    return std::ranges::all_of(value,
                               [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
  }
  if (name == "float" || name == "double" || name == "decimal") return is_real_number(value);
  if (name == "required") return !value.empty();
  if (name == "length") {
    return constraint.arguments.size() == 1 ? size == argument(0)
                                            : size >= argument(0) && size <= argument(1);
  }
  if (name == "minlength") return size >= argument(0);
  if (name == "maxlength") return size <= argument(0);
  if (name == "min") return number && *number >= argument(0);
  if (name == "max") return number && *number <= argument(0);
  return number && *number >= argument(0) && *number <= argument(1);
}

bool Route::take(const Part& part, std::string_view value, RouteParams& params) {
  const bool is_good =
      std::ranges::all_of(part.constraints, [&](const auto& each) { return is_met(each, value); });
  if (is_good) params.emplace_back(part.text, value);
  return is_good;
}

// From the right, each literal where it is found first, as ASP.NET does it: a parameter before a literal
// takes as much as it can, and nothing is tried twice. Literals and parameters alternate.
bool Route::match(const Segment& segment, std::string_view value, RouteParams& params) {
  const std::vector<Part>& parts = segment.parts;
  std::vector<std::string_view> values(parts.size());
  std::size_t end = value.size();  // what lies before is still to be matched
  for (std::size_t i = parts.size(); i-- > 0;) {
    if (parts[i].is_param) continue;  // gets what the literal before it leaves
    const std::string_view literal = parts[i].text;
    const bool is_last = i + 1 == parts.size();
    if (!is_last && end == 0) return false;
    const std::string_view room = value.substr(0, is_last ? end : end - 1);  // its parameter is not empty
    if (literal.size() > room.size()) return false;
    std::size_t at = 0;
    if (i == 0 || is_last) {
      at = i == 0 ? 0 : room.size() - literal.size();
      if (!same_text(room.substr(at, literal.size()), literal)) return false;
      if (i == 0 && is_last && room.size() != literal.size()) return false;
    } else {
      const auto found = std::ranges::find_end(room, literal, same_char);
      if (found.empty()) return false;
      at = static_cast<std::size_t>(found.begin() - room.begin());
    }
    const std::size_t after = at + literal.size();
    if (!is_last) values[i + 1] = value.substr(after, end - after);
    end = at;
  }
  if (parts.front().is_param) values.front() = value.substr(0, end);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].is_param && (values[i].empty() || !take(parts[i], values[i], params))) return false;
  }
  return true;
}

std::optional<RouteParams> Route::match(const std::vector<std::string>& segments) const {
  RouteParams params;
  std::size_t at = 0;
  for (const Segment& segment : segments_) {
    if (segment.is_rest) {
      std::string rest;
      for (; at < segments.size(); ++at) rest += (rest.empty() ? "" : "/") + segments[at];
      if (rest.empty() && segment.fallback) rest = *segment.fallback;
      if (!rest.empty() && !take(segment.parts.front(), rest, params)) return std::nullopt;
      return params;
    }
    if (at == segments.size()) {
      if (segment.fallback) {
        params.emplace_back(segment.parts.front().text, *segment.fallback);
      } else if (!segment.is_optional) {
        return std::nullopt;
      }
      continue;
    }
    if (!match(segment, segments[at], params)) return std::nullopt;
    ++at;
  }
  if (at < segments.size()) return std::nullopt;
  return params;
}

void RouteTable::add(RouteEntry entry) {
  const auto after = std::ranges::upper_bound(
      entries_, entry,
      [](const RouteEntry& one, const RouteEntry& other) { return one.route < other.route; });
  entries_.insert(after, std::move(entry));
}

RouteTable::Found RouteTable::find(const std::vector<std::string>& segments, std::string_view method) const {
  Found found;
  for (const RouteEntry& each : entries_) {
    std::optional<RouteParams> params = each.route.match(segments);
    if (!params) continue;
    if (each.methods.empty() || std::ranges::count(each.methods, method) > 0 ||
        // Who answers a GET answers what asks for its head.
        (method == "HEAD" && std::ranges::count(each.methods, "GET") > 0)) {
      found.target = each.target;
      found.params = *std::move(params);
      found.allowed.clear();
      return found;
    }
    for (const std::string& allowed : each.methods) {
      if (std::ranges::count(found.allowed, allowed) == 0) found.allowed.push_back(allowed);
    }
  }
  return found;
}

}  // namespace windlass::runtime
