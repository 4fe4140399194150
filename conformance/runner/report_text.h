// Text of strangers made harmless for each place it is shown in. Whatever is valid and visible stays as it
// is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace windlass::conformance {

// Valid UTF-8: each byte that is part of no character becomes U+FFFD.
std::string clean_utf8(std::string_view text);

// Text that cannot steer what shows it, be it a terminal, a page or an editor: control characters become
// their pictures (U+2400 ...), and what turns the writing direction, hides or may not be in XML becomes
// "[U+202E]". Line feeds and tabs stay.
std::string visible(std::string_view text);

// `visible` on one line, at most `columns` characters.
std::string one_line(std::string_view text, std::size_t columns);

// `visible`, for the text and the quoted attributes of HTML and XML.
std::string escaped(std::string_view text);

// A JSON string with its quotes. '<' is written as an escape, so that the text may stand inside a script
// element.
std::string json_string(std::string_view text);

// A JSON number with at most three decimals. JSON has no infinity and no NaN: those are 0.
std::string json_number(double value);

// "3 ms", "1.25 s", "2 min 5 s"
std::string duration_text(double milliseconds);

// Characters, not bytes.
std::size_t text_columns(std::string_view text);

}  // namespace windlass::conformance
