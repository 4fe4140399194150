// Result<T>: a value or an Error, with std::expected's member names so that moving to C++23 is one alias.
// What a peer or the environment can cause is a Result; ignoring one does not compile.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "protocol/base/check.h"
#include "protocol/base/error_code.h"

namespace windlass {

// Where in our source an error was made. std::source_location is missing in Clang 14 with this library.
struct SourceLine {
  const char* file = "";
  int line = 0;
  static constexpr SourceLine here(const char* f = __builtin_FILE(), int l = __builtin_LINE()) {
    return {f, l};
  }
};

enum class Blame { Local, Peer };

struct Error {
  Error(ErrorCode c, Blame b, std::string r, SourceLine w = SourceLine::here())
      : code(c), blame(b), reason(std::move(r)), where(w) {}

  ErrorCode code;
  Blame blame;
  std::string reason;  // one sentence: what, where, what to do
  SourceLine where;
};

struct Done {
  friend bool operator==(Done, Done) = default;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & {
    CHECK(has_value());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    CHECK(has_value());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    CHECK(has_value());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    CHECK(!has_value());
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

}  // namespace windlass
