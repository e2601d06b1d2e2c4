// Lists what each layer of a model saves, and the ways in which it may be treated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/passes/saved_values.h"

namespace strata::plan {

/// Sending smaller values away costs more time than the memory that it frees is worth.
inline constexpr std::int64_t kLeastLeavingBytes = 1 << 16;

/// Saved values of which all are recomputed or none: outputs of one operation.
struct SavedGroup {
  std::vector<runtime::ValueId> roots;
  std::int64_t bytes = 0;          ///< on the device, each value rounded up to its room there
  std::int64_t pinned_bytes = 0;   ///< in pinned memory, likewise
  double price = 0;                ///< work per byte of recomputing it
  bool can_be_remade = false;      ///< only its own layer reads it
  bool is_cheap = false;           ///< results of norms and activation functions
  bool can_leave = false;          ///< all of it may leave the device, and is worth the transfer
  bool is_input = false;           ///< the block before makes it: the layer's input
  std::vector<std::string> names;  ///< empty for an input
  /// Compares all but the roots.
  [[nodiscard]] bool is_like(const SavedGroup& other) const;
};

/// The action on each group of a layer.
using SavedWay = std::vector<runtime::SavedAction>;

/// A layer holds what it makes and reads alone, and what the block before it makes for it. Other
/// values, such as those that all layers read, are kept and have no part in this.
struct SavedLayer {
  int block = 0;
  /// Groups that can be remade come first, the cheapest of them at the front.
  std::vector<SavedGroup> groups;

  [[nodiscard]] bool is_like(const SavedLayer& other) const;
  /// Bytes of the groups with this action, where it puts them; those of the device for recompute.
  [[nodiscard]] std::int64_t bytes(const SavedWay& way, runtime::SavedAction action) const;
};

/// `copies`: how often a Program makes each value, once per micro-batch.
std::vector<SavedLayer> list_saved_layers(const runtime::Graph& graph,
                                          const std::vector<runtime::SavedValue>& values,
                                          std::int64_t copies);

/// Lists ways that recompute and keep: nothing, group by group in their order, and all that is
/// cheap. The first keeps all.
std::vector<SavedWay> ways_to_remake(const SavedLayer& layer);

/// Returns `way` with the last 1, 2, ... groups that are kept and can leave sent to `to`: what
/// would cost most to recompute leaves first.
std::vector<SavedWay> ways_to_send(const SavedLayer& layer, const SavedWay& way,
                                   runtime::SavedAction to);

}  // namespace strata::plan
