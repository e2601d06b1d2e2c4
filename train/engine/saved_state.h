// What of an engine's state stands where in a checkpoint: the same answer on every rank, without a
// word between them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/checkpoint/checkpoint_layout.h"
#include "train/engine/engine.h"

namespace strata::train {

/// Name in optimizer.safetensors of one kind of state of a tensor: "moment1.model.norm.weight".
std::string optimizer_tensor_name(std::string_view kind, std::string_view tensor);

/// Weights under their names in the compute type; every other kind of state as it is kept, in its
/// own type. Tensors in unit order, of a unit kind by kind, so that a rank's part of a unit is one
/// range of a file. Borrows the engine.
class SavedState {
 public:
  explicit SavedState(const Engine& engine);

  [[nodiscard]] const CheckpointLayout& layout() const { return layout_; }
  [[nodiscard]] const BlockAssignment& assignment() const { return assignment_; }

  /// A piece that this rank saves, between steps: memory of the engine or of `buffer`, valid until
  /// either changes.
  [[nodiscard]] std::span<const std::byte> read(const Piece& piece,
                                                std::vector<std::byte>& buffer) const;

 private:
  /// Of this rank.
  struct Entry {
    Piece piece;
    zero::StateEntry state;
  };
  SavedState(const Engine& engine, const std::vector<std::vector<zero::StateEntry>>& saved);

  const Engine& engine_;
  CheckpointLayout layout_;
  std::vector<Entry> entries_;  ///< ascending
  BlockAssignment assignment_;
};

}  // namespace strata::train
