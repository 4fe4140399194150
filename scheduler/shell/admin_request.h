// What an admin request says, taken apart strictly: a path of decoded parts, query parameters and a JSON
// body. Whatever is not understood is an error that names it, so that no misspelt wish is silently ignored.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/result.h"
#include "protocol/base/time.h"

namespace windlass {

struct Target {
  std::vector<std::string> path;  // decoded; "/v1/workers" has two parts
  std::map<std::string, std::string, std::less<>> query;
};

// E.PROTO.SCHEMA for a broken escape or a parameter given twice.
Result<Target> parse_target(std::string_view text);

struct IntegerRange {
  std::uint64_t least = 0;
  std::uint64_t most = 0;
};

// Parameters by name. The first mistake is kept for finish(), which also finds what nobody asked for.
class QueryReader final {
 public:
  explicit QueryReader(const Target& target) : rest_(target.query) {}
  std::optional<std::string> text(std::string_view name);
  std::optional<std::uint64_t> integer(std::string_view name, IntegerRange range);
  void refuse(std::string_view name, std::string_view what);
  Result<Done> finish() const;

 private:
  std::map<std::string, std::string, std::less<>> rest_;
  std::optional<Error> error_;
};

// Members of a JSON object by name, with JSON pointers in what is refused. An empty body is an empty object.
class BodyReader final {
 public:
  explicit BodyReader(std::string_view body);
  std::optional<std::string> text(std::string_view name);
  std::optional<std::uint64_t> integer(std::string_view name, IntegerRange range);
  std::optional<std::string> object(std::string_view name);  // its JSON text, byte for byte
  std::optional<bool> boolean(std::string_view name);
  std::optional<std::string> any(std::string_view name);  // likewise, of whatever it is
  // The members of an object of whole numbers, and of texts.
  std::optional<std::map<std::string, std::uint64_t>> integers(std::string_view name, IntegerRange range);
  std::optional<std::map<std::string, std::string>> texts(std::string_view name);
  // The members of an object of texts and nulls.
  std::optional<std::map<std::string, std::optional<std::string>>> texts_or_nulls(std::string_view name);
  void require(std::string_view name, bool is_there);
  Result<Done> finish() const;

 private:
  enum class Kind : std::uint8_t { Text, Integer, Object, Boolean, Other };
  struct Member {
    Kind kind = Kind::Other;
    std::string text;
    std::string raw = {};
  };
  void read(std::string_view body);
  std::optional<Member> take(std::string_view name, Kind kind, std::string_view wanted);
  void refuse(std::string_view name, std::string_view what);

  std::map<std::string, Member, std::less<>> rest_;
  std::optional<Error> error_;
};

}  // namespace windlass
