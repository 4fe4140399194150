// What every HTML report has in common: its looks and its few lines of script.
#pragma once

#include <string_view>

namespace windlass::conformance {

std::string_view report_style();
std::string_view report_script();

// SHA-256 of the script, in base64. The page's content security policy lets this script run and no other, so
// even markup that slipped through the escaping could not act.
std::string_view report_script_hash();

}  // namespace windlass::conformance
