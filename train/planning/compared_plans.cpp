#include "train/planning/compared_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "core/text_table.h"
#include "train/planning/short_flags.h"

namespace strata::train {

std::vector<Compared> compared(const PlannedRun& planned, const ResolvedConfig& config,
                               const MemoryBudget& budget) {
  const auto flags_of = [&](const plan::Choices& choices) {
    return flags_text(changes_to(config.options, {.choices = choices}, budget));
  };
  const std::optional<plan::PlannedStep>& chosen = planned.answer.chosen;
  const std::string chosen_flags = chosen ? flags_of(chosen->choices) : "";
  std::vector<Compared> rows;
  std::map<std::string, std::size_t> row_of;  // by flags
  for (const plan::Attempt& attempt : planned.answer.attempts) {
    const std::string flags = flags_of(attempt.choices);
    const auto [at, is_new] = row_of.try_emplace(flags, rows.size());
    if (is_new) rows.push_back({.attempt = attempt, .is_chosen = chosen && flags == chosen_flags});
    plan::Attempt& row = rows[at->second].attempt;
    if (attempt.seconds || !row.seconds) row = attempt;
  }
  for (Compared& row : rows) {
    if (!row.is_chosen) continue;
    row.attempt.seconds = chosen->forecast.step_seconds;
    row.attempt.lacks.clear();
  }
  std::ranges::stable_sort(rows, {}, [](const Compared& row) {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    return std::pair(row.attempt.seconds.value_or(kNever), !row.is_chosen);
  });
  return rows;
}

std::string describe_attempts(const PlannedRun& planned, const ResolvedConfig& config,
                              const MemoryBudget& budget) {
  using enum TextTable::Align;
  TextTable table({{"s/step", right}, {"guessed", right}, {"settings"}});
  for (const auto& [attempt, is_chosen] : compared(planned, config, budget)) {
    const std::string flags = short_flags({.choices = attempt.choices}, config, budget);
    table.add({attempt.seconds ? fmt::format("{:.4g}", *attempt.seconds) : "no " + attempt.lacks,
               fmt::format("{:.4g}", attempt.guessed_seconds),
               (is_chosen ? "chosen: " : "") + (flags.empty() ? "as asked" : flags)});
  }
  return table.text();
}

}  // namespace strata::train
