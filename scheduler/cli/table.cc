#include "scheduler/cli/table.h"

#include <algorithm>
#include <ctime>
#include <iomanip>
#include <sstream>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/base/utf8.h"

namespace windlass::cli {
namespace {

// Characters, not bytes: continuation bytes take no column.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string without_controls(std::string_view text, bool keeps_lines) {
  std::string shown{text};
  const bool is_text = is_utf8(text);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const auto byte = static_cast<unsigned char>(shown[i]);
    // U+0080 to U+009F are control characters too, as C2 80 to C2 9F.
    const bool is_c1 =
        byte == 0xC2U && i + 1 < shown.size() && static_cast<unsigned char>(shown[i + 1]) < 0xA0U;
    if (is_c1) shown[i + 1] = '?';
    if (byte == '\n' || byte == '\t') {
      if (!keeps_lines) shown[i] = ' ';
      continue;
    }
    if (is_c1 || byte < 0x20U || byte == 0x7FU || (!is_text && byte >= 0x80U)) shown[i] = '?';
  }
  return shown;
}

}  // namespace

std::string printable(std::string_view text) {
  return without_controls(text, false);
}

std::string printable_lines(std::string_view text) {
  return without_controls(text, true);
}

std::string age_of(std::string_view iso_time) {
  std::tm parts{};
  std::istringstream in{std::string{iso_time}};
  in >> std::get_time(&parts, "%Y-%m-%dT%H:%M:%S");
  if (in.fail()) return {};
  const std::time_t seconds = std::max<std::time_t>(0, std::time(nullptr) - ::timegm(&parts));
  if (seconds < 120) return std::to_string(seconds) + 's';
  if (seconds < 2 * 3600) return std::to_string(seconds / 60) + 'm';
  if (seconds < 48 * 3600) return std::to_string(seconds / 3600) + 'h';
  return std::to_string(seconds / (24 * 3600)) + 'd';
}

void Table::add(std::vector<std::string> cells) {
  CHECK(cells.size() == rows_.front().size());
  for (std::string& cell : cells) cell = cell.empty() ? "-" : printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string text;
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text.append(widths[i] - width(row[i]) + 2, ' ');
    }
    text += '\n';
  }
  return text;
}

}  // namespace windlass::cli
