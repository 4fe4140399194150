// Text for people: tables with aligned columns. What workers wrote is made harmless for a terminal first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace windlass::cli {

// Control characters could move the cursor or worse, so they are shown as '?'; line breaks and tabs as
// blanks.
std::string printable(std::string_view text);
// Likewise, with line breaks and tabs as they are.
std::string printable_lines(std::string_view text);

// How long ago, for a time as answers write it: "12s", "5m", "3h", "2d".
std::string age_of(std::string_view iso_time);

class Table final {
 public:
  explicit Table(std::vector<std::string> titles) : rows_{std::move(titles)} {}
  // As many cells as there are titles.
  void add(std::vector<std::string> cells);
  std::size_t size() const { return rows_.size() - 1; }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace windlass::cli
