// The fields of TrainOptions as a table: name, meaning, range, and how a word becomes a value.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "train/config/options.h"

namespace strata::train {

using OptionTarget =
    std::variant<bool*, std::int64_t*, double*, std::string*, std::vector<std::string>*, DType*,
                 OptimizerType*, SchedulerType*, WarmupType*, NoDecay*, DeviceChoice*, StateRecipe*,
                 comm::Reduction*, OffloadTarget*, UpdateTime*, SaveInterval*, SaveFailure*,
                 NonFinite*, RampShape*, Cadence*, StepRange*>;

/// How the words of a whole number are read.
enum class NumberKind {
  whole,
  count,  ///< a fraction is rounded down with a note (0.9 * hidden^2 of some writers)
  most,   ///< what is beyond `highest` is `highest`: 1e20 steps between lines are as good as never
  bytes,  ///< with a unit or without (byte_size.h)
};

struct OptionField {
  std::string_view name;  ///< "zero.stage"
  std::string_view meaning;
  OptionTarget target;
  double lowest = 0;  ///< of numbers
  double highest = 1e300;
  NumberKind kind = NumberKind::whole;
  double* part = nullptr;  ///< of intervals: takes what is below one, a part of all steps
};

/// All fields of `options`, in the order of --print-config.
std::vector<OptionField> option_fields(TrainOptions& options);

/// nullptr: no field of that name.
const OptionField* find_field(const std::vector<OptionField>& fields, std::string_view name);

/// "expected a number from 0 to 3", `kind` being "a number".
std::string range_text(const OptionField& field, std::string_view kind);

/// Sets the field. Returns "" or "found X, expected Y". `note` is filled when a value was bent.
std::string assign(const OptionField& field, const std::vector<std::string>& words,
                   std::string& note);

/// The value as text: "500000000", "bf16", "a.bin b.bin", "" for an unset path.
std::string text_of(const OptionField& field);

}  // namespace strata::train
