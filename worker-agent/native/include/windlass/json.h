// A little JSON for functions: read a document, pick values, write text. For more, use any JSON library; a
// function's data and values are plain text. Needs nothing but C++20's standard library.
//
//   const auto order = windlass::Json::parse(event.text());           // throws windlass::JsonError with the
//   place const double price = order["price"].number(0);                    // 0 where it is no number return
//   windlass::Value::json("{\"total\":" + windlass::json_number(price * 2) + "}");
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace windlass {

class JsonError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The text as a JSON string, with its quotes. Bytes above 127 are passed on: give UTF-8.
inline std::string json_quote(std::string_view text) {
  constexpr std::string_view hex = "0123456789abcdef";
  std::string quoted = "\"";
  quoted.reserve(text.size() + 2);
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += "\\u00";
      quoted += hex[static_cast<unsigned char>(c) >> 4];
      quoted += hex[static_cast<unsigned char>(c) & 15];
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

// The shortest text that reads back as the same number; null for what JSON cannot say.
inline std::string json_number(double number) {
  if (!std::isfinite(number)) return "null";
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

class Json final {
 public:
  using Array = std::vector<Json>;
  using Object = std::map<std::string, Json, std::less<>>;

  Json() = default;  // null
  static Json parse(std::string_view text);

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(any_); }
  // The value where it has that type, else what is given.
  bool boolean(bool otherwise) const { return or_else(otherwise); }
  double number(double otherwise) const { return or_else(otherwise); }
  std::string string(std::string otherwise) const { return or_else(std::move(otherwise)); }
  const Array& array() const { return or_empty<Array>(); }
  const Object& object() const { return or_empty<Object>(); }

  // Null where this is no object or array, or has no such member.
  const Json& operator[](std::string_view member) const {
    const auto found = object().find(member);
    return found == object().end() ? null() : found->second;
  }
  const Json& operator[](const char* member) const { return (*this)[std::string_view(member)]; }
  const Json& operator[](std::size_t index) const { return index < array().size() ? array()[index] : null(); }

 private:
  class Reader;
  template <class T>
  T or_else(T otherwise) const {
    const T* value = std::get_if<T>(&any_);
    return value != nullptr ? *value : std::move(otherwise);
  }
  template <class T>
  const T& or_empty() const {
    static const T empty;
    const T* value = std::get_if<T>(&any_);
    return value != nullptr ? *value : empty;
  }
  static const Json& null() {
    static const Json value;
    return value;
  }

  std::variant<std::nullptr_t, bool, double, std::string, Array, Object> any_ = nullptr;
};

class Json::Reader final {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Json document() {
    Json value = any(0);
    space();
    if (at_ != text_.size()) fail("text after the value");
    return value;
  }

 private:
  static constexpr int kDepthMax = 128;

  [[noreturn]] void fail(const char* what) const {
    throw JsonError("not JSON at byte " + std::to_string(at_) + ": " + what);
  }
  void space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  char peek() {
    space();
    if (at_ == text_.size()) fail("it ends too early");
    return text_[at_];
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void word(std::string_view expected) {
    if (!text_.substr(at_).starts_with(expected)) fail("not a value");
    at_ += expected.size();
  }

  Json any(int depth) {
    if (depth > kDepthMax) fail("nested too deep");
    Json value;
    switch (peek()) {
      case '{':
        value.any_ = object(depth);
        break;
      case '[':
        value.any_ = array(depth);
        break;
      case '"':
        value.any_ = quoted();
        break;
      case 't':
        word("true"), value.any_ = true;
        break;
      case 'f':
        word("false"), value.any_ = false;
        break;
      case 'n':
        word("null");
        break;
      default:
        value.any_ = numeral();
    }
    return value;
  }

  Object object(int depth) {
    Object members;
    ++at_;
    if (take('}')) return members;
    do {
      if (peek() != '"') fail("a member's name is missing");
      std::string name = quoted();
      if (!take(':')) fail("':' is missing");
      members.insert_or_assign(std::move(name), any(depth + 1));
    } while (take(','));
    if (!take('}')) fail("'}' is missing");
    return members;
  }

  Array array(int depth) {
    Array items;
    ++at_;
    if (take(']')) return items;
    do {
      items.push_back(any(depth + 1));
    } while (take(','));
    if (!take(']')) fail("']' is missing");
    return items;
  }

  double numeral() {
    const std::string_view rest = text_.substr(at_);
    const std::size_t first = rest.starts_with('-') ? 1 : 0;
    const auto digit = [&](std::size_t i) { return i < rest.size() && rest[i] >= '0' && rest[i] <= '9'; };
    if (!digit(first) || (rest[first] == '0' && digit(first + 1))) fail("not a value");
    double number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error == std::errc::invalid_argument || *(end - 1) == '.') fail("not a number");
    at_ += static_cast<std::size_t>(end - rest.data());
    return number;
  }

  std::string quoted() {
    std::string value;
    for (++at_;;) {
      if (at_ >= text_.size()) fail("a string does not end");
      const char c = text_[at_++];
      if (c == '"') return value;
      if (static_cast<unsigned char>(c) < 0x20) fail("a control character in a string");
      if (c != '\\') {
        value += c;
      } else {
        escape(value);
      }
    }
  }

  void escape(std::string& value) {
    if (at_ >= text_.size()) fail("a string does not end");
    constexpr std::string_view names = "\"\\/bfnrt";
    constexpr std::string_view meant = "\"\\/\b\f\n\r\t";
    const char c = text_[at_++];
    if (const auto found = names.find(c); found != std::string_view::npos) {
      value += meant[found];
      return;
    }
    if (c != 'u') fail("an unknown escape");
    std::uint32_t point = unit();
    if (point >= 0xD800 && point < 0xDC00 && text_.substr(at_).starts_with("\\u")) {
      at_ += 2;
      const std::uint32_t low = unit();
      if (low < 0xDC00 || low > 0xDFFF) fail("half of a surrogate pair");
      point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
    } else if (point >= 0xD800 && point < 0xE000) {
      fail("half of a surrogate pair");
    }
    utf8(point, value);
  }

  std::uint32_t unit() {
    std::uint32_t value = 0;
    const std::string_view digits = text_.substr(at_, 4);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc() || digits.size() != 4 || end != digits.data() + 4)
      fail("\\u needs four hex digits");
    at_ += 4;
    return value;
  }

  static void utf8(std::uint32_t point, std::string& value) {
    const auto add = [&](std::uint32_t byte) { value += static_cast<char>(byte); };
    if (point < 0x80) {
      add(point);
    } else if (point < 0x800) {
      add(0xC0 | point >> 6), add(0x80 | (point & 63));
    } else if (point < 0x10000) {
      add(0xE0 | point >> 12), add(0x80 | (point >> 6 & 63)), add(0x80 | (point & 63));
    } else {
      add(0xF0 | point >> 18), add(0x80 | (point >> 12 & 63)), add(0x80 | (point >> 6 & 63)),
          add(0x80 | (point & 63));
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

inline Json Json::parse(std::string_view text) {
  return Reader(text).document();
}

}  // namespace windlass
