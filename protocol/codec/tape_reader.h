// Walks a parsed JSON document: the parser's tape (values) and, in step with it, the positions in the text
// where its tokens start, so that the exact bytes of any object can be handed on. Owns no memory and knows no
// schema; the parser itself stays in decode.cc. The tape's layout is simdjson's, documented in its
// doc/tape.md.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "protocol/base/check.h"
#include "protocol/codec/decode.h"

namespace windlass::codec {

struct ParsedText {
  const std::uint64_t* tape = nullptr;
  const std::uint8_t* strings = nullptr;
  const std::uint32_t* marks = nullptr;  // where each token starts in `text`
  std::size_t mark_count = 0;
  const char* text = nullptr;
};

class TapeReader {
 public:
  // A value to come back to: the payload is read after the whole envelope.
  struct Place {
    const std::uint64_t* tape = nullptr;
    const std::uint32_t* mark = nullptr;
  };
  static constexpr std::size_t kNamesMax = 256;

  explicit TapeReader(Violation& violation) : violation_(violation) {}

  void start(const ParsedText& document) {
    document_ = document;
    at_ = {document.tape + 1, document.marks};
  }
  Place place() const { return at_; }
  void go_to(Place place) { at_ = place; }

  bool is_object() const { return tag() == '{'; }
  bool is_array() const { return tag() == '['; }
  bool is_string() const { return tag() == '"'; }
  bool is_integer() const { return tag() == 'l' || tag() == 'u'; }
  bool is_number() const { return is_integer() || tag() == 'd'; }
  bool is_boolean() const { return tag() == 't' || tag() == 'f'; }
  bool is_null() const { return tag() == 'n'; }
  bool is_negative() const { return tag() == 'l' && static_cast<std::int64_t>(at_.tape[1]) < 0; }

  // for (bool more = in.enter(); more; more = in.next()) { key() or a value } walks a container.
  bool enter() {
    step(1);
    return !leave_if_done();
  }
  bool next() {
    if (leave_if_done()) return false;
    ++at_.mark;  // the comma
    return true;
  }
  std::string_view key() {
    const std::string_view name = text_of(at_.tape);
    ++at_.tape;
    at_.mark += 2;  // the name and the colon
    return name;
  }

  std::string_view string() {
    const std::string_view value = text_of(at_.tape);
    step(1);
    return value;
  }
  // The two's complement of a negative number: ask is_negative() first.
  std::uint64_t integer() {
    const std::uint64_t value = at_.tape[1];
    step(2);
    return value;
  }
  double number() {
    const std::uint64_t word = at_.tape[1];
    const char kind = tag();
    step(2);
    if (kind == 'd') return std::bit_cast<double>(word);
    return kind == 'l' ? static_cast<double>(static_cast<std::int64_t>(word)) : static_cast<double>(word);
  }
  bool boolean() {
    const bool value = tag() == 't';
    step(1);
    return value;
  }

  void skip() {
    if (is_object() || is_array()) {
      skip_container();
    } else {
      step(is_number() ? 2 : 1);
    }
  }
  // The bytes of the container here, as they came.
  std::string_view raw() {
    const std::uint32_t begin = *at_.mark;
    skip_container();
    return {document_.text + begin, at_.mark[-1] + 1 - begin};
  }
  // The bytes of the container that was read between `from` and here.
  std::string_view raw_since(Place from) const {
    return {document_.text + *from.mark, at_.mark[-1] + 1 - *from.mark};
  }

  // Each refusal returns false and notes the rule; within() adds the way there, innermost name first.
  bool reject(std::string_view name, const char* rule) {
    reject(rule);
    return within(name);
  }
  bool reject(const char* rule);
  bool within(std::string_view name);
  bool within(std::size_t index);
  bool within_item(std::string_view name, std::size_t index) {
    within(index);
    return within(name);
  }
  bool reject_item(std::string_view name, std::size_t index, const char* rule) {
    reject(rule);
    return within_item(name, index);
  }
  //= ENV-1
  bool unknown(std::string_view name) { return reject(name, "is not a field of this object"); }
  bool missing(std::uint32_t fields, const std::string_view* names) {
    return reject(names[std::countr_zero(fields)], "is required");
  }
  //= ENV-8
  bool duplicate(std::string_view name) { return reject(name, "occurs twice"); }
  // Remembers the names of an object open to any name.
  bool is_new(std::string_view name, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (names_[i] == name) return false;
    }
    names_[count] = name;
    return true;
  }

 private:
  char tag() const { return static_cast<char>(*at_.tape >> 56U); }
  void step(std::size_t words) {
    at_.tape += words;
    ++at_.mark;
  }
  bool leave_if_done() {
    if (tag() != '}' && tag() != ']') return false;
    step(1);
    return true;
  }
  std::string_view text_of(const std::uint64_t* word) const {
    const std::uint8_t* bytes = document_.strings + (*word & 0xffffffffffffffU);
    std::uint32_t size = 0;
    std::memcpy(&size, bytes, sizeof size);
    return {reinterpret_cast<const char*>(bytes) + sizeof size, size};
  }
  void skip_container() {
    at_.tape = document_.tape + static_cast<std::uint32_t>(*at_.tape);
    const bool is_last = tag() == '}' && static_cast<char>(at_.tape[1] >> 56U) == 'r';
    if (is_last) {  // the usual case, since payload comes last: only the outermost brace follows
      at_.mark = document_.marks + document_.mark_count - 1;
      return;
    }
    std::size_t depth = 0;
    do {
      // '{' and '[' differ in one bit, as do their ends; no other token starts with these.
      const int token = document_.text[*at_.mark++] | 0x20;
      depth += static_cast<std::size_t>(token == '{') - static_cast<std::size_t>(token == '}');
    } while (depth != 0);
  }

  Violation& violation_;
  ParsedText document_;
  Place at_;
  std::array<std::string_view, kNamesMax> names_;
};

}  // namespace windlass::codec
