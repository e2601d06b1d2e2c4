#include "train/planning/plan_saved.h"

#include <algorithm>
#include <cstdint>

#include "runtime/passes/autodiff.h"
#include "runtime/passes/saved_values.h"

namespace strata::train {
namespace {

/// What is smaller costs more as a transfer than it frees.
constexpr std::int64_t kLeastLeavingBytes = 1 << 16;

/// Indices of blocks that are layers.
std::vector<int> layers_of(const std::vector<std::string>& blocks) {
  std::vector<int> layers;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (blocks[i].starts_with("layer.")) layers.push_back(static_cast<int>(i));
  return layers;
}

}  // namespace

std::vector<runtime::BlockActions> plan_saved(const TrainOptions& options, runtime::Graph graph) {
  const OffloadTarget target = options.offload.activations;
  const std::vector<int> layers = layers_of(graph.blocks);
  runtime::differentiate(graph, {options.dtype});
  runtime::SavedChoices choices(graph);
  if (layers.empty()) return choices.actions();
  if (options.activation_checkpointing) {
    const auto total = static_cast<std::int64_t>(layers.size());
    const std::int64_t asked = options.checkpoint_segments;
    const std::int64_t segments = asked <= 0 ? total : std::min(asked, total);
    for (std::int64_t s = 0; s < segments; ++s)
      choices.recompute_blocks(layers[static_cast<std::size_t>(s * total / segments)],
                               layers[static_cast<std::size_t>((s + 1) * total / segments - 1)]);
  } else if (options.recompute_norms) {
    choices.recompute_cheap(layers.front(), layers.back());
  }
  if (target != OffloadTarget::none)
    choices.send(
        layers.front(), layers.back(),
        target == OffloadTarget::nvme ? runtime::SavedAction::disk : runtime::SavedAction::host,
        kLeastLeavingBytes);
  return choices.actions();
}

}  // namespace strata::train
