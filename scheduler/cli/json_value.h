// A JSON answer, looked at by JSON pointer. Absent members read as nothing, because a newer scheduler may say
// more and an older one less.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace windlass::cli {

class Json final {
 public:
  // Nothing when the text is not one JSON document.
  static std::optional<Json> parse(std::string_view text);

  bool is_object() const;
  bool has(std::string_view pointer) const;
  // Texts as they are; numbers and booleans in JSON's spelling; empty when absent.
  std::string text(std::string_view pointer) const;
  double number(std::string_view pointer) const;    // 0 when absent
  std::string raw(std::string_view pointer) const;  // compact JSON; empty when absent
  std::vector<Json> list(std::string_view pointer) const;
  std::vector<std::string> names(std::string_view pointer) const;  // of an object's members
  std::string pretty(std::string_view pointer) const;              // for people; empty when absent

 private:
  struct Inside;
  // Shared, since the parts of a document live in its memory.
  explicit Json(std::shared_ptr<const Inside> inside) : inside_(std::move(inside)) {}
  std::shared_ptr<const Inside> inside_;
};

std::string json_text(std::string_view text);  // as a JSON string

}  // namespace windlass::cli
