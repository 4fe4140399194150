// What a route may ask of a parameter's value, as ASP.NET's inline constraints do: {id:int},
// {code:regex(^a)}. Pure, and linear in the value, whoever wrote the route.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/result.h"

namespace re2 {
class RE2;
}

namespace windlass::runtime {

class RouteConstraint final {
 public:
  // Of "int", "range(1,5)". An error is one sentence about the route part `whole`.
  static Result<RouteConstraint> parse(std::string_view text, std::string_view whole);
  bool is_met(std::string_view value) const;
  bool is_pattern() const { return pattern_ != nullptr; }

 private:
  std::string name_;
  std::vector<long long> arguments_;
  std::shared_ptr<const re2::RE2> pattern_;  // of a regex; shared by copies of the route
};

// Whether .NET's invariant culture reads it as a date, a time of day or both: year-month-day or
// month-day-year (with - . or /), "2 Jan 2024", "Jan 2, 2024", "Tue, 02 Jan 2024"; after it a time behind 'T'
// or a space, with AM or PM, a fraction, and Z, GMT or +01:00.
bool is_date_time(std::string_view text);

}  // namespace windlass::runtime
