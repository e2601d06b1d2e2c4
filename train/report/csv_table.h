// Reads the tables of a report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strata::train {

/// A header line, then rows of as many fields (RFC 4180, fields without line breaks).
class CsvTable {
 public:
  /// Throws ConfigError that names `file` and the line.
  CsvTable(std::string_view text, std::string file);

  [[nodiscard]] std::size_t rows() const { return rows_.size(); }
  /// Throw ConfigError where the column is missing, or the field is no number.
  [[nodiscard]] const std::string& text(std::size_t row, std::string_view column) const;
  [[nodiscard]] double number(std::size_t row, std::string_view column) const;
  /// The field must be a whole number that a double holds exactly.
  [[nodiscard]] std::int64_t whole_number(std::size_t row, std::string_view column) const;
  /// Returns nothing for an empty field.
  [[nodiscard]] std::optional<double> number_if_any(std::size_t row, std::string_view column) const;

 private:
  [[nodiscard]] std::vector<std::string> split(std::string_view line, std::size_t number) const;
  [[noreturn]] void fail(std::size_t line, const std::string& what) const;

  std::string file_;
  std::vector<std::string> head_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace strata::train
