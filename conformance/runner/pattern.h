// Patterns and variables of cases: docs/conformance-cases.md, "Patterns" and "Variables".
#pragma once

#include <boost/json.hpp>
#include <string>

namespace windlass::conformance {

namespace json = boost::json;

using Variables = json::object;  // without the dollar sign

// With every variable replaced by its value. A name that is not known stays as it is written.
json::value substitute(const json::value& value, const Variables& variables);

// `value` is null where a member is absent. What is captured is added, also where the whole does not fit in
// the end: the caller passes a copy when that matters.
bool fits(const json::value& pattern, const json::value* value, Variables& captured);

// RFC 7396: members that are null are removed, objects are merged.
void merge(json::value& target, const json::value& patch);

}  // namespace windlass::conformance
