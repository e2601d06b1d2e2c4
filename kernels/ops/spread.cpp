#include "kernels/ops/spread.h"

#include <algorithm>
#include <cstddef>

namespace strata::kernels {
namespace {

constexpr char kNoLetter = '.';

/// Returns the letters of operand `k` of a list, or "" if the list is shorter.
std::string_view letters_of(std::string_view list, std::size_t k) {
  for (; k > 0; --k) {
    const std::size_t comma = list.find(',');
    if (comma == std::string_view::npos) return {};
    list.remove_prefix(comma + 1);
  }
  return list.substr(0, list.find(','));
}

bool is_added(std::string_view letters) { return letters.starts_with('+'); }
bool is_read_alike(std::string_view letters) { return letters == "*"; }
std::string_view without_mark(std::string_view letters) {
  return letters.substr(is_added(letters) ? 1 : 0);
}

/// Returns the letter along which the first sharded input is cut.
char cut_letter(std::string_view rule, std::span<const Spread> inputs) {
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k].kind != Spread::Kind::sharded) continue;
    const std::string_view letters = letters_of(rule, k);
    const auto dimension = static_cast<std::size_t>(inputs[k].dimension);
    const std::string_view names = without_mark(letters);
    if (!is_read_alike(letters) && dimension < names.size()) return names[dimension];
  }
  return kNoLetter;
}

Spread cut_along(char cut, std::string_view letters) {
  const std::size_t at = cut == kNoLetter ? std::string_view::npos : letters.find(cut);
  return at == std::string_view::npos ? kReplicated : sharded(static_cast<int>(at));
}

Spread output_of(char cut, std::string_view letters) {
  const Spread found = cut_along(cut, letters);
  return found == kReplicated && cut != kNoLetter ? kPartialSum : found;
}

std::optional<Misfit> keep(std::span<const Spread> inputs, std::span<Spread> outputs) {
  const auto first =
      std::ranges::find_if(inputs, [](const Spread& input) { return input != kZeros; });
  std::ranges::fill(outputs, first == inputs.end() ? kZeros : *first);
  for (std::size_t k = 0; k < inputs.size(); ++k)
    if (inputs[k] != kZeros && inputs[k] != *first) return Misfit{static_cast<int>(k), *first};
  return {};
}

}  // namespace

std::optional<Misfit> spread_outputs(std::string_view rule, std::span<const Spread> inputs,
                                     std::span<Spread> outputs) {
  if (rule == kAlike) return keep(inputs, outputs);
  const std::size_t arrow = std::min(rule.find("->"), rule.size());
  const std::string_view ins = rule.substr(0, arrow);
  const std::string_view outs = rule.substr(std::min(arrow + 2, rule.size()));
  const char cut = cut_letter(ins, inputs);
  for (std::size_t k = 0; k < outputs.size(); ++k) outputs[k] = output_of(cut, letters_of(outs, k));
  std::optional<Misfit> first;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const std::string_view letters = letters_of(ins, k);
    Spread expected = cut_along(cut, without_mark(letters));
    if (is_added(letters) && outputs[0] == kPartialSum) expected = kPartialSum;
    const bool fits = inputs[k] == expected || inputs[k] == kZeros ||
                      (is_read_alike(letters) && inputs[k] != kPartialSum);
    if (fits) continue;
    const Misfit misfit{static_cast<int>(k), expected};
    if (!is_added(letters)) return misfit;
    if (!first) first = misfit;  // another misfit, if there is one, is the cause
  }
  return first;
}

}  // namespace strata::kernels
