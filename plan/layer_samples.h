// Models with few layers, whose Programs are compiled in place of a whole model's.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "compile/model.h"
#include "core/at_once.h"

namespace strata::plan {

/// Layers are alike, so that what Programs need and do is a straight line in their number, whose
/// constant is the rest of the model. Two models with a few layers give this line. Where layers
/// differ, or are few, the whole model is the only sample.
class LayerSamples {
 public:
  struct Sample {
    std::size_t index = 0;
    compile::TrainingModel model;
    std::vector<runtime::ParameterUnit> units;
  };

  /// `few`: false if the whole model is to be the sample.
  LayerSamples(const compile::TrainingModel& whole, const runtime::BatchShape& shape, bool few);

  /// Returns what `measure`, which is called for the samples at the same time, makes of the whole
  /// model. `mix(a, b, t)` returns a + (b - a) * t.
  template <typename Measure, typename Mix>
  [[nodiscard]] auto extrapolated(const Measure& measure, const Mix& mix) const {
    auto found = all_at_once(samples_.size(), [&](std::size_t i) { return measure(samples_[i]); });
    return samples_.size() == 1 ? std::move(found.front())
                                : mix(found.front(), found.back(), beyond_);
  }
  [[nodiscard]] const std::vector<Sample>& samples() const { return samples_; }

 private:
  std::vector<Sample> samples_;
  double beyond_ = 0;  ///< place of the whole on the line: 0 is the first sample, 1 the second
};

}  // namespace strata::plan
