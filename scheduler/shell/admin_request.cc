#include "scheduler/shell/admin_request.h"

#include <simdjson.h>

#include <charconv>
#include <utility>

#include "protocol/base/clip.h"
#include "protocol/base/limits.h"
#include "protocol/crypto/percent_encoding.h"

namespace windlass {
namespace {

constexpr std::size_t kNameShownMax = 64;

Error wrong(std::string text, ErrorCode code = ErrorCode::ProtoSchema) {
  return {code, Blame::Peer, std::move(text)};
}

// Cuts the text up to the mark from its front.
std::string_view take_until(std::string_view& text, char mark) {
  const std::size_t at = text.find(mark);
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return part;
}

std::optional<std::uint64_t> whole_number(std::string_view text, IntegerRange range) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (value < range.least || value > range.most) return std::nullopt;
  return value;
}

std::string number_wanted(IntegerRange range) {
  return "a whole number from " + std::to_string(range.least) + " to " + std::to_string(range.most) +
         " is wanted";
}

std::string pointer_to(std::string_view name) {
  std::string pointer = "/";
  for (const char c : sayable(name, kNameShownMax)) {
    if (c == '~') {
      pointer += "~0";
    } else if (c == '/') {
      pointer += "~1";
    } else {
      pointer += c;
    }
  }
  return pointer;
}

// A value as it was written; objects are read elsewhere, since that uses them up.
std::string raw_text(simdjson::ondemand::value& value, simdjson::ondemand::json_type type) {
  std::string_view text;
  if (type == simdjson::ondemand::json_type::object) return {};
  if (type == simdjson::ondemand::json_type::array) {
    simdjson::ondemand::array list;
    if (value.get_array().get(list) != simdjson::SUCCESS) return {};
    if (list.raw_json().get(text) != simdjson::SUCCESS) return {};
  } else {
    text = value.raw_json_token();
  }
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  return std::string{text.substr(0, last == std::string_view::npos ? 0 : last + 1)};
}

}  // namespace

Result<Target> parse_target(std::string_view text) {
  if (!text.starts_with('/')) return wrong("the request's target does not start with '/'");
  Target target;
  std::string_view path = take_until(text, '?');
  path.remove_prefix(1);
  while (!path.empty()) {
    auto part = percent_decode(take_until(path, '/'));
    if (!part) return wrong("the path has a '%' without two hexadecimal digits behind it");
    target.path.push_back(std::move(*part));
  }
  while (!text.empty()) {
    std::string_view pair = take_until(text, '&');
    const auto name = percent_decode(take_until(pair, '='));
    auto value = percent_decode(pair);
    if (!name || !value) return wrong("the query has a '%' without two hexadecimal digits behind it");
    const auto [at, is_new] = target.query.emplace(*name, std::move(*value));
    if (!is_new) return wrong("the query gives '" + std::string{sayable(*name, kNameShownMax)} + "' twice");
  }
  return target;
}

std::optional<std::string> QueryReader::text(std::string_view name) {
  const auto at = rest_.find(name);
  if (at == rest_.end()) return std::nullopt;
  return std::move(rest_.extract(at).mapped());
}

std::optional<std::uint64_t> QueryReader::integer(std::string_view name, IntegerRange range) {
  const auto given = text(name);
  if (!given) return std::nullopt;
  const auto value = whole_number(*given, range);
  if (!value) refuse(name, number_wanted(range));
  return value;
}

void QueryReader::refuse(std::string_view name, std::string_view what) {
  if (!error_) error_ = wrong("query parameter '" + std::string{name} + "': " + std::string{what});
}

Result<Done> QueryReader::finish() const {
  if (error_) return *error_;
  if (rest_.empty()) return Done{};
  return wrong("query parameter '" + std::string{sayable(rest_.begin()->first, kNameShownMax)} +
               "' is not known here");
}

BodyReader::BodyReader(std::string_view body) {
  if (!body.empty()) read(body);
}

// The first parse finds every mistake of syntax; the second keeps values as they were written.
void BodyReader::read(std::string_view body) {
  const simdjson::padded_string padded{body};
  simdjson::dom::parser judge;
  if (const auto error = judge.parse(padded).error(); error != simdjson::SUCCESS) {
    error_ =
        wrong(std::string{"the body is not JSON: "} + simdjson::error_message(error), ErrorCode::ProtoJson);
    return;
  }
  simdjson::ondemand::parser parser;
  simdjson::ondemand::document document;
  simdjson::ondemand::object members;
  if (parser.iterate(padded).get(document) != simdjson::SUCCESS ||
      document.get_object().get(members) != simdjson::SUCCESS) {
    error_ = wrong("the body is not a JSON object");
    return;
  }
  const auto set = [](Member& member, Kind kind, std::string_view text) {
    member.kind = kind;
    member.text = text;
  };
  for (auto field : members) {
    std::string_view name;
    simdjson::ondemand::value value;
    simdjson::ondemand::json_type type{};
    if (field.unescaped_key().get(name) != simdjson::SUCCESS) break;
    const std::string owned_name{name};
    if (field.value().get(value) != simdjson::SUCCESS || value.type().get(type) != simdjson::SUCCESS) break;
    Member member;
    member.raw = raw_text(value, type);
    std::string_view text;
    std::uint64_t number = 0;
    bool flag = false;
    simdjson::ondemand::object inner;
    if (type == simdjson::ondemand::json_type::string) {
      if (value.get_string().get(text) == simdjson::SUCCESS) set(member, Kind::Text, text);
    } else if (type == simdjson::ondemand::json_type::number) {
      if (value.get_uint64().get(number) == simdjson::SUCCESS)
        set(member, Kind::Integer, std::to_string(number));
    } else if (type == simdjson::ondemand::json_type::boolean) {
      if (value.get_bool().get(flag) == simdjson::SUCCESS) set(member, Kind::Boolean, flag ? "true" : "");
    } else if (type == simdjson::ondemand::json_type::object) {
      if (value.get_object().get(inner) == simdjson::SUCCESS &&
          inner.raw_json().get(text) == simdjson::SUCCESS) {
        // The library counts the space behind it too.
        set(member, Kind::Object, text.substr(0, text.rfind('}') + 1));
      }
    }
    if (!rest_.emplace(owned_name, std::move(member)).second) refuse(owned_name, "it is given twice");
  }
}

std::optional<BodyReader::Member> BodyReader::take(std::string_view name, Kind kind,
                                                   std::string_view wanted) {
  const auto at = rest_.find(name);
  if (at == rest_.end()) return std::nullopt;
  Member member = std::move(rest_.extract(at).mapped());
  if (member.kind == kind) return member;
  refuse(name, wanted);
  return std::nullopt;
}

std::optional<std::string> BodyReader::text(std::string_view name) {
  auto member = take(name, Kind::Text, "a text is wanted");
  if (!member) return std::nullopt;
  return std::move(member->text);
}

std::optional<std::uint64_t> BodyReader::integer(std::string_view name, IntegerRange range) {
  const auto member = take(name, Kind::Integer, number_wanted(range));
  if (!member) return std::nullopt;
  const auto value = whole_number(member->text, range);
  if (!value) refuse(name, number_wanted(range));
  return value;
}

std::optional<std::string> BodyReader::object(std::string_view name) {
  auto member = take(name, Kind::Object, "a JSON object is wanted");
  if (!member) return std::nullopt;
  return std::move(member->text);
}

std::optional<bool> BodyReader::boolean(std::string_view name) {
  const auto member = take(name, Kind::Boolean, "true or false is wanted");
  if (!member) return std::nullopt;
  return !member->text.empty();
}

std::optional<std::string> BodyReader::any(std::string_view name) {
  const auto at = rest_.find(name);
  if (at == rest_.end()) return std::nullopt;
  Member member = std::move(rest_.extract(at).mapped());
  return member.kind == Kind::Object ? std::move(member.text) : std::move(member.raw);
}

std::optional<std::map<std::string, std::string>> BodyReader::texts(std::string_view name) {
  const auto object_text = object(name);
  if (!object_text) return std::nullopt;
  simdjson::dom::parser parser;
  simdjson::dom::object members;
  std::map<std::string, std::string> found;
  if (parser.parse(*object_text).get_object().get(members) != simdjson::SUCCESS) return found;
  for (const auto member : members) {
    std::string_view text;
    if (member.value.get_string().get(text) != simdjson::SUCCESS) refuse(name, "every member must be a text");
    if (!found.emplace(member.key, text).second) refuse(name, "a member is given twice");
  }
  return found;
}

std::optional<std::map<std::string, std::optional<std::string>>> BodyReader::texts_or_nulls(
    std::string_view name) {
  const auto object_text = object(name);
  if (!object_text) return std::nullopt;
  simdjson::dom::parser parser;
  simdjson::dom::object members;
  std::map<std::string, std::optional<std::string>> found;
  if (parser.parse(*object_text).get_object().get(members) != simdjson::SUCCESS) return found;
  for (const auto member : members) {
    std::optional<std::string> value;
    std::string_view text;
    if (member.value.get_string().get(text) == simdjson::SUCCESS) {
      value = std::string{text};
    } else if (!member.value.is_null()) {
      refuse(name, "every member must be a text, or null to remove it");
    }
    if (!found.emplace(member.key, std::move(value)).second) refuse(name, "a member is given twice");
  }
  return found;
}

std::optional<std::map<std::string, std::uint64_t>> BodyReader::integers(std::string_view name,
                                                                         IntegerRange range) {
  const auto object_text = object(name);
  if (!object_text) return std::nullopt;
  simdjson::dom::parser parser;
  simdjson::dom::object members;
  std::map<std::string, std::uint64_t> found;
  if (parser.parse(*object_text).get_object().get(members) != simdjson::SUCCESS) return found;
  for (const auto member : members) {
    std::uint64_t value = 0;
    const bool is_number = member.value.get_uint64().get(value) == simdjson::SUCCESS;
    if (!is_number || value < range.least || value > range.most)
      refuse(name, "of each member " + number_wanted(range));
    if (!found.emplace(member.key, value).second) refuse(name, "a member is given twice");
  }
  return found;
}

void BodyReader::require(std::string_view name, bool is_there) {
  if (!is_there) refuse(name, "it is missing");
}

void BodyReader::refuse(std::string_view name, std::string_view what) {
  if (!error_) error_ = wrong(pointer_to(name) + ": " + std::string{what});
}

Result<Done> BodyReader::finish() const {
  if (error_) return *error_;
  if (rest_.empty()) return Done{};
  return wrong(pointer_to(rest_.begin()->first) + ": no such member is known here");
}

}  // namespace windlass
