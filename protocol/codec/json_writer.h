// Writes JSON members into a string. Knows escapes, numbers and times, and no schema.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/base/time.h"

namespace windlass::codec {

class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  // Names are ours, so they need no escapes.
  void begin(std::string_view name) {
    this->name(name);
    out_ += '{';
    first_ = true;
  }
  void begin() {
    separate();
    out_ += '{';
    first_ = true;
  }
  void end() {
    out_ += '}';
    first_ = false;
  }
  void begin_list(std::string_view name) {
    this->name(name);
    out_ += '[';
    first_ = true;
  }
  void end_list() {
    out_ += ']';
    first_ = false;
  }

  void text(std::string_view name, std::string_view value) {
    this->name(name);
    quoted(value);
  }
  void text_if_any(std::string_view name, std::string_view value) {
    if (!value.empty()) text(name, value);
  }
  void item(std::string_view value) {
    separate();
    quoted(value);
  }
  void integer(std::string_view name, std::uint64_t value);
  void number(std::string_view name, double value);
  void boolean(std::string_view name, bool value) { raw(name, value ? "true" : "false"); }
  // A value that is JSON text already.
  void raw(std::string_view name, std::string_view json) {
    this->name(name);
    out_ += json;
  }

  enum class TimeStyle { MillisecondsZ, MicrosecondsOffset };
  void time(std::string_view name, WallTime value, TimeStyle style);

 private:
  void separate() {
    if (!first_) out_ += ',';
    first_ = false;
  }
  void name(std::string_view name) {
    separate();
    out_ += '"';
    out_ += name;
    out_ += "\":";
  }
  void quoted(std::string_view value);

  std::string& out_;
  bool first_ = true;
};

}  // namespace windlass::codec
