#include "plan/layer_samples.h"

#include <utility>

namespace strata::plan {
namespace {

/// Layers of the two samples. With two and four of 32 layers memory was wrong by up to 1.7 %.
constexpr int kFew = 3, kMore = 6;
/// A share between two that are compiled takes both samples twice: from here on that is less work
/// than all layers once.
constexpr int kManyLayers = 2 * (kFew + kMore) + 1;

}  // namespace

LayerSamples::LayerSamples(const compile::TrainingModel& whole, const runtime::BatchShape& shape,
                           bool few) {
  const auto add = [&](compile::TrainingModel model) {
    auto units = model.build(shape, compile::ModelUse::train).graph.units;
    samples_.push_back({samples_.size(), std::move(model), std::move(units)});
  };
  if (!few || !whole.with_layers || whole.layers < kManyLayers) {
    add(whole);
    return;
  }
  add(whole.with_layers(kFew));
  add(whole.with_layers(kMore));
  beyond_ = static_cast<double>(whole.layers - kFew) / (kMore - kFew);
}

}  // namespace strata::plan
