// docs/openapi.json and what is served are the same list.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <set>
#include <string>

#include "scheduler/shell/admin_api.h"

namespace windlass {
namespace {

std::string upper(std::string_view text) {
  std::string result;
  for (const char c : text) result += static_cast<char>(c - ('a' <= c && c <= 'z' ? 'a' - 'A' : 0));
  return result;
}

TEST(OpenApi, DescribesEveryRouteServedAndNoOther) {
  simdjson::dom::parser parser;
  simdjson::dom::object paths;
  ASSERT_EQ(parser.load(WINDLASS_OPENAPI_FILE)["paths"].get(paths), simdjson::SUCCESS);
  std::set<std::string> described;
  for (const auto path : paths) {
    for (const auto operation : path.value.get_object()) {
      described.insert(upper(operation.key) + ' ' + std::string{path.key});
    }
  }
  std::set<std::string> served;
  for (const AdminRoute& route : AdminApi::routes()) {
    served.insert(std::string{route.method} + ' ' + std::string{route.path});
  }
  EXPECT_EQ(described, served);
}

// Every reference leads somewhere.
void check_references(const simdjson::dom::element& document, const simdjson::dom::element& part) {
  if (part.is_array()) {
    for (const auto each : part.get_array()) check_references(document, each);
  }
  if (!part.is_object()) return;
  for (const auto member : part.get_object()) {
    if (member.key == "$ref") {
      const std::string reference{member.value.get_c_str().value()};
      EXPECT_EQ(document.at_pointer(reference.substr(1)).error(), simdjson::SUCCESS) << reference;
    }
    check_references(document, member.value);
  }
}

TEST(OpenApi, RefersOnlyToWhatIsThere) {
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  ASSERT_EQ(parser.load(WINDLASS_OPENAPI_FILE).get(document), simdjson::SUCCESS);
  check_references(document, document);
}

}  // namespace
}  // namespace windlass
