// What a Plan decides in a word each: what people ask for, and what the search changes where a Plan
// does not fit (neighbours.h).
#pragma once

#include <cstdint>
#include <vector>

#include "compile/model.h"
#include "runtime/graph/plan.h"
#include "zero/policy.h"

namespace strata::plan {

/// Where a kind of state lives, in the order in which it leaves memory.
enum class Home : std::uint8_t { device, host, disk };

/// What layers make again of what their forward pass saves.
enum class Again : std::uint8_t { nothing, norms, everything };

struct Choices {
  zero::StagePolicy sharding;
  runtime::UnitRecipe recipe;    ///< of every unit
  std::int64_t micro_batch = 1;  ///< samples
  int micro_steps = 1;
  bool layer_major = false;  ///< with several micro-steps
  Again again = Again::nothing;
  std::int64_t segments = 0;  ///< of layers, for Again::everything; 0: each layer is one
  double again_part = 1;      ///< of the bytes that Again::everything frees layer by layer, 0 to 1
  Home optimizer = Home::device;
  Home parameters = Home::device;  ///< of units that sharding would not leave gathered
  Home activations = Home::device;
  double optimizer_part = 1;  ///< of the state whose home is not the device: what leaves it, 0 to 1
  /// Elements per rank that stay in host memory where the disk is their home: of units in order,
  /// each that still fits.
  std::int64_t parameter_host_elements = 0;
  /// next_step: where the optimizer's home is the device, step_end.
  runtime::Updates updates = runtime::Updates::next_step;

  bool operator==(const Choices&) const = default;
  [[nodiscard]] bool moves_state() const {
    return optimizer != Home::device || parameters != Home::device || activations != Home::device;
  }
};

/// `frame` with what the choices say of shapes, order and the units of a model.
runtime::Plan with_choices(runtime::Plan frame, const Choices& choices,
                           const std::vector<runtime::ParameterUnit>& units);

/// `frame`, a Plan whose mesh, virtual ranks, gradient types, shape and limits stand, with all else
/// that the choices say. Builds the model's Graph of the micro-batch that they name.
runtime::Plan with_choices(runtime::Plan frame, const Choices& choices,
                           const compile::ModelFunction& build);

}  // namespace strata::plan
