#include "runtime/adapters/http_routes.h"

#include <algorithm>
#include <utility>

namespace windlass::runtime {
namespace {

constexpr std::size_t kSegmentsMax = 64;

Error bad_route(std::string_view text, std::string_view why) {
  return {ErrorCode::ProtoSchema, Blame::Peer,
          "the route part '" + std::string{text} + "' " + std::string{why}};
}

std::string too_many_constraints() {
  return "has more than " + std::to_string(Route::kConstraintsMax) + " constraints, counted over the route";
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

// Where the bracket that opens at `at` is closed. A doubled bracket stands for itself.
std::size_t closing_bracket(std::string_view text, std::size_t at) {
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] != '{' && text[i] != '}') continue;
    const bool is_doubled = i + 1 < text.size() && text[i + 1] == text[i];
    if (!is_doubled) return text[i] == '}' ? i : std::string_view::npos;
    ++i;
  }
  return std::string_view::npos;
}

std::string single_brackets(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    plain += text[i];
    if ((text[i] == '{' || text[i] == '}') && i + 1 < text.size() && text[i + 1] == text[i]) ++i;
  }
  return plain;
}

// How much of `text` is one constraint: up to the colon or the equals sign after it, where none of its own
// brackets is open. Escapes and character classes of a regular expression hide brackets.
std::size_t constraint_size(std::string_view text) {
  int depth = 0;
  bool is_class = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (depth == 0 && (c == ':' || c == '=')) return i;
    if (depth > 0 && c == '\\') {
      ++i;
    } else if (depth > 0 && (c == '[' || c == ']')) {
      is_class = c == '[';
    } else if (!is_class && (c == '(' || c == ')')) {
      depth += c == '(' ? 1 : -1;
    }
  }
  return text.size();
}

}  // namespace

Result<Route::Part> Route::parse_param(std::string_view text, Segment& segment) {
  const std::string_view whole = text;
  Part part{.text = {}, .is_param = true};
  if (text.starts_with('*')) {
    segment.is_rest = true;
    text.remove_prefix(text.starts_with("**") ? 2 : 1);
  }
  if (text.ends_with('?')) {
    part.is_optional = true;
    text.remove_suffix(1);
  }
  const std::size_t name = std::min(text.find_first_of(":="), text.size());
  part.text = text.substr(0, name);
  text.remove_prefix(name);
  while (text.starts_with(':')) {
    text.remove_prefix(1);
    if (++segment.constraints > kConstraintsMax) return bad_route(whole, too_many_constraints());
    const std::size_t size = constraint_size(text);
    Result<RouteConstraint> constraint = RouteConstraint::parse(text.substr(0, size), whole);
    if (!constraint) return constraint.error();
    segment.patterns += constraint->is_pattern() ? 1U : 0U;
    part.constraints.push_back(*std::move(constraint));
    text.remove_prefix(size);
  }
  if (text.starts_with('=')) segment.fallback = text.substr(1);
  if (part.text.empty()) return bad_route(whole, "has no name");
  if (part.text.find_first_of("/{}?*") != std::string::npos) {
    return bad_route(whole, "has a name with one of the characters / { } ? *");
  }
  return part;
}

Result<Route::Segment> Route::parse_segment(std::string_view text) {
  const std::string_view whole = text;
  Segment segment;
  std::string literal;
  const auto end_literal = [&] {
    if (!literal.empty()) segment.parts.push_back({.text = std::exchange(literal, {})});
  };
  while (!text.empty()) {
    const bool is_doubled = text.starts_with("{{") || text.starts_with("}}");
    if (is_doubled || (text.front() != '{' && text.front() != '}')) {
      literal += text.front();
      text.remove_prefix(is_doubled ? 2 : 1);
      continue;
    }
    if (text.front() == '}') return bad_route(whole, "closes a bracket that it did not open");
    end_literal();
    const std::size_t end = closing_bracket(text, 0);
    if (end == std::string_view::npos) return bad_route(whole, "opens a bracket and does not close it");
    if (!segment.parts.empty() && segment.parts.back().is_param) {
      return bad_route(whole, "has two parameters with nothing between them");
    }
    Result<Part> part = parse_param(single_brackets(text.substr(1, end - 1)), segment);
    if (!part) return part.error();
    segment.parts.push_back(*std::move(part));
    text.remove_prefix(end + 1);
  }
  end_literal();
  if (segment.parts.size() == 1) {
    segment.is_optional = segment.parts.front().is_optional;
    return segment;
  }
  if (segment.is_rest || segment.fallback) {
    return bad_route(whole, "mixes a default or a catch-all with other text; these must be a whole segment");
  }
  for (std::size_t i = 0; i < segment.parts.size(); ++i) {
    const bool is_after_dot = i + 1 == segment.parts.size() && i > 0 && segment.parts[i - 1].text == ".";
    if (segment.parts[i].is_optional && !is_after_dot) {
      return bad_route(whole, "has an optional parameter that is neither alone nor the last after a period");
    }
  }
  return segment;
}

Result<Route> Route::parse(std::string_view text) {
  const std::string_view whole = text;
  while (text.starts_with('/')) text.remove_prefix(1);
  while (text.ends_with('/')) text.remove_suffix(1);
  Route route;
  std::size_t constraints = 0;
  while (!text.empty()) {
    // A slash inside a bracket is part of it.
    std::size_t end = 0;
    for (; end < text.size() && text[end] != '/'; ++end) {
      if (text.substr(end).starts_with("{{")) {
        ++end;
      } else if (text[end] == '{') {
        end = std::min(closing_bracket(text, end), text.size() - 1);
      }
    }
    if (end == 0) return bad_route(whole, "has two slashes in a row");
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
    constraints += segment->constraints;
    if (constraints > kConstraintsMax) return bad_route(whole, too_many_constraints());
    route.patterns_ += segment->patterns;
    route.segments_.push_back(*std::move(segment));
    if (route.segments_.size() > kSegmentsMax) {
      return bad_route(text, "exceeds the limit of " + std::to_string(kSegmentsMax) + " segments");
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  // As ASP.NET ranks them: literal before mixed and constrained, which are equal, before free, before the
  // rest, of which a constrained one comes first; so for each segment.
  for (const Segment& each : route.segments_) {
    const bool is_literal = each.parts.size() == 1 && !each.parts.front().is_param;
    const bool is_constrained = !each.parts.front().constraints.empty();
    const char open = each.is_rest ? '5' : '3';
    route.rank_ += is_literal              ? '1'
                   : each.parts.size() > 1 ? '2'
                   : is_constrained        ? static_cast<char>(open - 1)
                                           : open;
  }
  return route;
}

bool Route::take(const Part& part, std::string_view value, RouteParams& params) {
  const bool is_good =
      std::ranges::all_of(part.constraints, [&](const auto& each) { return each.is_met(value); });
  if (is_good) params.emplace_back(part.text, value);
  return is_good;
}

// From the right, each literal where it is found first, as ASP.NET does it: a parameter before a literal
// takes as much as it can, and nothing is tried twice. Literals and parameters alternate.
std::optional<std::vector<std::string_view>> Route::split(std::span<const Part> parts,
                                                          std::string_view value) {
  if (parts.empty()) return std::nullopt;
  std::vector<std::string_view> values(parts.size());
  std::size_t end = value.size();  // what lies before is still to be matched
  for (std::size_t i = parts.size(); i-- > 0;) {
    if (parts[i].is_param) continue;  // gets what the literal before it leaves
    const std::string_view literal = parts[i].text;
    const bool is_last = i + 1 == parts.size();
    if (!is_last && end == 0) return std::nullopt;
    const std::string_view room = value.substr(0, is_last ? end : end - 1);  // its parameter is not empty
    if (literal.size() > room.size()) return std::nullopt;
    std::size_t at = 0;
    if (i == 0 || is_last) {
      at = i == 0 ? 0 : room.size() - literal.size();
      if (!same_text(room.substr(at, literal.size()), literal)) return std::nullopt;
      if (i == 0 && is_last && room.size() != literal.size()) return std::nullopt;
    } else {
      const auto* const found =
          std::find_end(room.begin(), room.end(), literal.begin(), literal.end(), same_char);
      if (found == room.end()) return std::nullopt;
      at = static_cast<std::size_t>(found - room.begin());
    }
    const std::size_t after = at + literal.size();
    if (!is_last) values[i + 1] = value.substr(after, end - after);
    end = at;
  }
  if (parts.front().is_param) values.front() = value.substr(0, end);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].is_param && values[i].empty()) return std::nullopt;
  }
  return values;
}

bool Route::match(const Segment& segment, std::string_view value, RouteParams& params) {
  const std::span<const Part> parts{segment.parts};
  auto values = split(parts, value);
  // "{name}.{ext?}" is also the name alone, and never the name with a period behind it.
  const bool may_lack_end = parts.size() > 1 && parts.back().is_optional;
  if (!values && may_lack_end && !value.ends_with('.')) values = split(parts.first(parts.size() - 2), value);
  if (!values) return false;
  for (std::size_t i = 0; i < values->size(); ++i) {
    if (parts[i].is_param && !take(parts[i], (*values)[i], params)) return false;
  }
  return true;
}

std::optional<RouteParams> Route::match(const std::vector<std::string>& segments) const {
  RouteParams params;
  std::size_t at = 0;
  for (const Segment& segment : segments_) {
    if (segment.is_rest) {
      std::string rest;
      for (const std::size_t first = at; at < segments.size(); ++at) {
        rest.append(at == first ? "" : "/").append(segments[at]);
      }
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
