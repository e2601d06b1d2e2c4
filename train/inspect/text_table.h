// Columns for people, and for awk: cells are separated by two spaces or more.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace strata::train {

class TextTable {
 public:
  enum class Align : std::uint8_t { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// One cell per column.
  void add(std::vector<std::string> cells);
  /// Titles and rows, one line each; without rows nothing.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace strata::train
