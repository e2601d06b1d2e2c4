#include "core/text_table.h"

#include <algorithm>
#include <cstddef>

#include "core/check.h"

namespace strata {

void TextTable::add(std::vector<std::string> cells) {
  STRATA_CHECK(cells.size() == columns_.size(), cells.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::text() const {
  if (rows_.empty()) return "";
  std::vector<std::size_t> width;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    width.push_back(columns_[c].title.size());
    for (const auto& row : rows_) width[c] = std::max(width[c], row[c].size());
  }
  std::string text;
  const auto add_line = [&](const auto& cell) {
    std::string line;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::string& content = cell(c);
      const std::string space(width[c] - content.size(), ' ');
      line += (c > 0 ? "  " : "") +
              (columns_[c].align == Align::right ? space + content : content + space);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_line([&](std::size_t c) -> const std::string& { return columns_[c].title; });
  for (const auto& row : rows_)
    add_line([&](std::size_t c) -> const std::string& { return row[c]; });
  return text;
}

}  // namespace strata
