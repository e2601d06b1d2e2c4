// Lists what options change in the input of the passes: Plan, attributes of the optimizer and of
// step_control, weight decay, first loss scale.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "train/config/make_plan.h"

namespace strata::train {

/// Names to values, such as "control.clip" to "1".
using Effects = std::map<std::string, std::string>;
using Settings = std::vector<std::pair<std::string, std::string>>;

/// A test case: `change` after `before` must have exactly these effects.
struct EffectRow {
  std::pair<std::string, std::string> change;  ///< option, value
  Effects effects;
  Settings before = {};  ///< settings that the option needs to have an effect
};

/// Rows of options that say what lies where, and what is sharded, gathered and recomputed.
std::span<const EffectRow> plan_option_rows();
/// Rows of options that say how a step updates: optimizer, learning rate, loss scale.
std::span<const EffectRow> step_option_rows();

/// Everything that options reach, on two ranks.
Effects effects_of(const TrainOptions& options);

/// The values that differ, as they are after; "" if it is gone.
Effects difference(const Effects& before, const Effects& after);

/// Sets an option as its text; fails if there is none of this name.
void set_option(TrainOptions& options, const std::string& name, const std::string& value);

}  // namespace strata::train
