#include "train/report/csv_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "core/error.h"

namespace strata::train {

CsvTable::CsvTable(std::string_view text, std::string file) : file_(std::move(file)) {
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::vector<std::string> fields = split(text.substr(0, end), ++number);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (number == 1)
      head_ = std::move(fields);
    else if (fields.size() == head_.size())
      rows_.push_back(std::move(fields));
    else
      fail(number, fmt::format("expected {} fields, found {}", head_.size(), fields.size()));
  }
  if (head_.empty()) fail(1, "expected a header line, found nothing");
}

std::vector<std::string> CsvTable::split(std::string_view line, std::size_t number) const {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && line.substr(i + 1, 1) == "\"")
      fields.back() += line[++i];
    else if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      fields.emplace_back();
    else
      fields.back() += c;
  }
  if (quoted) fail(number, "a quoted field does not end");
  return fields;
}

const std::string& CsvTable::text(std::size_t row, std::string_view column) const {
  const auto at = std::ranges::find(head_, column);
  if (at == head_.end()) fail(1, fmt::format("misses the column {}", column));
  return rows_.at(row)[static_cast<std::size_t>(at - head_.begin())];
}

double CsvTable::number(std::size_t row, std::string_view column) const {
  const std::string& field = text(row, column);
  double value = 0;
  const char* end = field.data() + field.size();
  const auto [stopped_at, error] = std::from_chars(field.data(), end, value);
  if (error != std::errc() || stopped_at != end)
    fail(row + 2, fmt::format("{}: expected a number, found '{}'", column, field));
  return value;
}

std::int64_t CsvTable::whole_number(std::size_t row, std::string_view column) const {
  constexpr double kMost = 9007199254740992.0;  // 2^53
  const double value = number(row, column);
  if (!(std::abs(value) <= kMost) || value != std::floor(value))
    fail(row + 2,
         fmt::format("{}: found '{}', expected a whole number", column, text(row, column)));
  return static_cast<std::int64_t>(value);
}

std::optional<double> CsvTable::number_if_any(std::size_t row, std::string_view column) const {
  if (text(row, column).empty()) return {};
  return number(row, column);
}

void CsvTable::fail(std::size_t line, const std::string& what) const {
  throw ConfigError(fmt::format("{}:{}: {}", file_, line, what));
}

}  // namespace strata::train
