// Formats columns for people, and for awk: two or more spaces separate cells.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace strata {

class TextTable {
 public:
  enum class Align : std::uint8_t { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// Adds a row, with one cell per column.
  void add(std::vector<std::string> cells);
  /// Returns titles and rows, one line each; "" without rows.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace strata
