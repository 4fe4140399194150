// Writes JSON members into a string. Knows escapes, numbers and times, and no schema. Each member ends with a
// comma, and the end of its object takes the last one back: that is cheaper than asking each time whether one
// is needed. Room is made before bytes are written, so that writing them is plain copying.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "protocol/base/time.h"

namespace windlass::codec {

class JsonWriter {
 public:
  // Appends to `out`, which is not to be touched until finish().
  explicit JsonWriter(std::string& out) : out_(out) {
    const std::size_t used = out.size();
    out.resize(used + kFirstRoom);
    at_ = out.data() + used;
    end_ = out.data() + out.size();
  }
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  // Names are ours, so they need no escapes.
  template <std::size_t N>
  void begin(const char (&name)[N]) {
    this->name(name, 1);
    *at_++ = '{';
  }
  void begin() {
    make_room(1);
    *at_++ = '{';
  }
  void end() { close('}'); }
  template <std::size_t N>
  void begin_list(const char (&name)[N]) {
    this->name(name, 1);
    *at_++ = '[';
  }
  void end_list() { close(']'); }
  // Once, after the outermost end().
  void finish() { out_.resize(static_cast<std::size_t>(at_ - out_.data()) - 1); }

  template <std::size_t N>
  void text(const char (&name)[N], std::string_view value) {
    this->name(name, value.size() + 3);
    quoted(value);
  }
  template <std::size_t N>
  void text_if_any(const char (&name)[N], std::string_view value) {
    if (!value.empty()) text(name, value);
  }
  void item(std::string_view value) {
    make_room(value.size() + 3);
    quoted(value);
  }
  template <std::size_t N>
  void integer(const char (&name)[N], std::uint64_t value) {
    this->name(name, kNumberRoom);
    write(value);
  }
  template <std::size_t N>
  void number(const char (&name)[N], double value) {
    this->name(name, kNumberRoom);
    write(value);
  }
  template <std::size_t N>
  void boolean(const char (&name)[N], bool value) {
    raw(name, value ? "true" : "false");
  }
  // A value that is JSON text already.
  template <std::size_t N>
  void raw(const char (&name)[N], std::string_view json) {
    this->name(name, json.size() + 1);
    copy(json.data(), json.size());
    *at_++ = ',';
  }

  enum class TimeStyle { MillisecondsZ, MicrosecondsOffset };
  template <std::size_t N>
  void time(const char (&name)[N], WallTime value, TimeStyle style) {
    this->name(name, kTimeRoom);
    write(value, style);
  }

 private:
  static constexpr std::size_t kFirstRoom = 512;
  static constexpr std::size_t kNumberRoom = 32;
  static constexpr std::size_t kTimeRoom = 40;

  void make_room(std::size_t bytes) {
    if (static_cast<std::size_t>(end_ - at_) < bytes) grow(bytes);
  }
  void copy(const char* from, std::size_t size) {
    std::memcpy(at_, from, size);
    at_ += size;
  }
  // "name": and room for a value of `room` bytes.
  template <std::size_t N>
  void name(const char (&name)[N], std::size_t room) {
    make_room(N + 2 + room);
    *at_++ = '"';
    copy(name, N - 1);
    *at_++ = '"';
    *at_++ = ':';
  }
  void close(char bracket) {
    make_room(2);
    if (at_[-1] == ',') --at_;
    *at_++ = bracket;
    *at_++ = ',';
  }

  void grow(std::size_t bytes);
  // These have room already.
  void quoted(std::string_view value);
  void write(std::uint64_t value);
  void write(double value);
  void write(WallTime value, TimeStyle style);
  void escaped(std::string_view value);

  std::string& out_;
  char* at_;
  char* end_;
};

}  // namespace windlass::codec
