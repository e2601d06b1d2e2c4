// Lists what each block of a model holds and costs under a Plan: state, saved values, arithmetic,
// time.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "compile/compile.h"

namespace strata::plan {

inline constexpr std::size_t kSavedActions = 4;  ///< of runtime::SavedAction

/// One block ("embedding", "layer.3", "head"), or "update" for what belongs to no block. Of one
/// rank; bytes are not rounded up to the layout's alignment.
struct LayerProfile {
  std::string block;
  // Kept between steps, in all tiers together.
  std::int64_t parameter_bytes = 0;
  std::int64_t gradient_bytes = 0;
  std::int64_t optimizer_bytes = 0;
  /// Bytes that the forward pass of one micro-batch leaves for the backward pass, by what becomes
  /// of them: the index is the runtime::SavedAction.
  std::array<std::int64_t, kSavedActions> saved_bytes{};
  // One step, as foreseen: every instruction alone on the machine, one after another.
  double flops = 0;
  double forward_seconds = 0;
  double backward_seconds = 0;  ///< with what is made again
  double update_seconds = 0;
  double moving_seconds = 0;     ///< of collectives and transfers; they run beside computation
  double recompute_seconds = 0;  ///< part of backward_seconds
  // Bytes that a micro-batch would not keep, and time that a step would take for it, if all layers
  // made all again that they can.
  std::int64_t recomputable_bytes = 0;
  double recomputable_seconds = 0;

  [[nodiscard]] std::int64_t saved(runtime::SavedAction action) const {
    return saved_bytes[static_cast<std::size_t>(action)];
  }
  /// Bytes that making values again frees per millisecond that it takes, as planned; 0: none are.
  [[nodiscard]] double freed_bytes_per_ms() const;
};

/// Returns a profile per block, in the model's order. `programs` are those of the rank at `where`.
/// Builds and differentiates the model's Graph once.
std::vector<LayerProfile> profile_layers(const compile::TrainingModel& model,
                                         const machine::Machine& machine,
                                         const comm::MeshSeat& where,
                                         const compile::StepPrograms& programs);

}  // namespace strata::plan
