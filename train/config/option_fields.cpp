#include "train/config/option_fields.h"

#include <algorithm>
#include <functional>

#include "train/config/option_rows.h"

namespace strata::train {
namespace {

const void* address_of(const OptionField& field) {
  return std::visit([](auto* target) -> const void* { return target; }, field.target);
}

std::vector<OptionRow> joined_rows() {
  std::vector<OptionRow> rows;
  for (const auto& part : {model_options(), run_options()})
    rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

}  // namespace

const std::vector<OptionRow>& option_rows() {
  static const std::vector<OptionRow> rows = joined_rows();
  return rows;
}

OptionKind kind_of(const OptionRow& row) {
  // One for each alternative of OptionTarget, in its order.
  const OptionKind kinds[] = {{JsonShape::flag, "[BOOL]", true},
                              {JsonShape::number, "N"},
                              {JsonShape::number, "X"},
                              {JsonShape::text, ""},
                              {JsonShape::texts, "", false, true},
                              {JsonShape::size, "N|X|TIME"},
                              {JsonShape::text, "A:B"},
                              {JsonShape::text, ""},
                              {JsonShape::tree, "JSON"}};
  TrainOptions unused;
  OptionKind kind = kinds[row.place(unused).index()];
  if (row.range.kind == NumberKind::bytes) kind = {JsonShape::size, "SIZE"};
  if (row.range.part != nullptr && kind.value_name == "N") kind.value_name = "N|X";
  for (auto it = row.words.begin(); it != row.words.end(); ++it)  // one word for each value
    if (it->is_offered && std::ranges::find(row.words, it->value, &Choice::value) == it)
      kind.value_name += (kind.value_name.empty() ? "" : "|") + std::string(it->name);
  if (row.key.shape != JsonShape::any) kind.shape = row.key.shape;
  return kind;
}

std::vector<OptionField> option_fields(TrainOptions& options) {
  std::vector<OptionField> fields;
  for (const OptionRow& row : option_rows())
    fields.push_back(
        {row, row.place(options),
         row.range.part == nullptr ? nullptr : std::get<double*>(row.range.part(options))});
  std::ranges::sort(fields, std::less<>(), address_of);
  return fields;
}

const OptionField* find_field(const std::vector<OptionField>& fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &OptionField::name);
  return found == fields.end() ? nullptr : &*found;
}

}  // namespace strata::train
