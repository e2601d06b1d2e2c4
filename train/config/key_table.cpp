#include "train/config/key_table.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>

#include "core/check.h"
#include "train/config/foreign_keys.h"
#include "train/config/option_fields.h"

namespace strata::train {
namespace {

using foreign_keys::KeyLine;

std::string_view parent_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

/// The last component of the row's path.
std::string_view name_of(const KeyRow& row) { return row.path.substr(row.path.rfind('.') + 1); }

std::vector<KeyRow> rows_of_options() {
  std::vector<KeyRow> rows;
  for (const OptionRow& option : option_rows())
    if (const Key& key = option.key; !key.path.empty())
      rows.push_back({.path = key.path,
                      .shape = kind_of(option).shape,
                      .support = Support::obeyed,
                      .target = option.name,
                      .fallback = key.fallback});
  return rows;
}

/// Moves the rows of options that this line places from `options` to `rows`.
void take_options(const KeyLine& line, std::vector<KeyRow>& options, std::vector<KeyRow>& rows) {
  const auto in_section = [&](const KeyRow& row) { return parent_of(row.path) == line.row.path; };
  std::istringstream names{std::string(line.names)};
  for (std::string name; names >> name;) {
    const auto named = std::ranges::find_if(
        options, [&](const KeyRow& row) { return in_section(row) && name_of(row) == name; });
    STRATA_CHECK(named != options.end(), name);
    rows.push_back(*named);
    options.erase(named);
  }
  if (line.of == KeyLine::Of::some_options) return;
  std::ranges::copy_if(options, std::back_inserter(rows), in_section);
  std::erase_if(options, in_section);
}

std::vector<KeyRow> all_key_rows() {
  std::vector<KeyRow> rows, options = rows_of_options();
  for (const KeyLine& line : foreign_keys::kKeyLines) {
    if (line.of == KeyLine::Of::itself)
      rows.push_back(line.row);
    else
      take_options(line, options, rows);
  }
  STRATA_CHECK(options.empty(), options.front().path);  // foreign_keys.h must place every section
  return rows;
}

}  // namespace

std::string_view name_of(Support support) {
  constexpr std::string_view kNames[] = {"obeyed",      "obeyed",   "accepted, unused",
                                         "refused",     "accepted", "other spelling",
                                         "old spelling"};
  return kNames[static_cast<int>(support)];
}

std::span<const KeyRow> key_table() {
  static const std::vector<KeyRow> rows = all_key_rows();
  return rows;
}

const KeyRow* find_key(std::string_view path) {
  const KeyRow* any_other = nullptr;
  for (const KeyRow& row : key_table()) {
    if (row.path == path) return &row;
    const bool star = row.path.ends_with(".*");
    if (star && parent_of(row.path) == parent_of(path)) any_other = &row;
  }
  return any_other;
}

std::vector<std::string_view> keys_of_section(std::string_view parent) {
  std::vector<std::string_view> names;
  for (const KeyRow& row : key_table()) {
    const bool star = row.path.ends_with('*');
    if (star || parent_of(row.path) != parent) continue;
    names.push_back(name_of(row));
  }
  return names;
}

}  // namespace strata::train
