// Definitions that the files of option rows share; private to them and to option_fields.cpp.
#pragma once

#include <type_traits>

#include "train/config/option_fields.h"

namespace strata::train {

template <typename Field>
OptionTarget target_of(Field& field) {
  if constexpr (std::is_enum_v<Field>) {
    static_assert(std::is_same_v<std::underlying_type_t<Field>, std::uint8_t>);
    return reinterpret_cast<std::uint8_t*>(&field);
  } else {
    return &field;
  }
}

/// PLACE(zero.stage) finds options.zero.stage; FIELD(zero.stage) is its name and place.
#define PLACE(path) [](TrainOptions& options) { return target_of(options.path); }
#define FIELD(path) #path, PLACE(path)

inline constexpr double kMostSteps = 1e15;
inline constexpr Range kSteps{0, kMostSteps};
inline constexpr Range kSomeSteps{1, kMostSteps};
inline constexpr Range kRate{0, 1e6};
inline constexpr Range kShare{0, 1};

inline constexpr Choice kCadences[] = {{Cadence::as_given, "as_given", false},
                                       {Cadence::never, "no"},
                                       {Cadence::steps, "steps"},
                                       {Cadence::epoch, "epoch"}};

std::span<const OptionRow> model_options();
std::span<const OptionRow> run_options();

}  // namespace strata::train
