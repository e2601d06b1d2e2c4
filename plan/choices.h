// The decisions of a Plan, in a word each: people ask for them; advice changes them if a Plan does
// not fit (neighbours.h), and the planner where steps become faster (alternatives.h).
#pragma once

#include <cstdint>
#include <vector>

#include "compile/model.h"
#include "plan/home.h"
#include "runtime/graph/plan.h"
#include "zero/policy.h"

namespace strata::plan {

/// The saved values that layers recompute.
enum class Again : std::uint8_t { nothing, norms, everything };

struct Choices {
  zero::StagePolicy sharding;
  runtime::UnitRecipe recipe;    ///< the same for every unit
  std::int64_t micro_batch = 1;  ///< samples
  int micro_steps = 1;
  bool layer_major = false;  ///< takes effect if there are several micro-steps
  Again again = Again::nothing;
  std::int64_t layer_runs =
      0;                  ///< number of runs of layers, for Again::everything; 0: one per layer
  double again_part = 1;  ///< share of the bytes that Again::everything can free, 0 to 1
  Home optimizer = Home::device;
  Home parameters = Home::device;  ///< home of units that are larger than the persistence threshold
  Home activations = Home::device;
  /// Actions on saved values. They alone decide if there are any; `again` and `activations` do not.
  std::vector<runtime::BlockActions> actions;
  double optimizer_part = 1;  ///< share of optimizer state that leaves the device, 0 to 1
  /// Sums of gradients wait off the device between micro-steps, too, if optimizer state does.
  bool sums_away = false;
  /// Elements per rank that stay in host memory if the parameters' home is the disk: units are
  /// taken in order, each that still fits.
  std::int64_t parameter_host_elements = 0;
  /// next_step becomes step_end if the optimizer's home is the device.
  runtime::Updates updates = runtime::Updates::next_step;

  bool operator==(const Choices&) const = default;
  /// True if optimizer state, parameters or saved values have this home, not the device.
  [[nodiscard]] bool uses(Home home) const;
  [[nodiscard]] bool moves_state() const { return uses(Home::host) || uses(Home::disk); }
  /// True if several micro-steps one after another each add to the sums of gradients.
  [[nodiscard]] bool adds_sums_up() const { return micro_steps > 1 && !layer_major; }
  /// True if sums of gradients live off the device.
  [[nodiscard]] bool keeps_sums_away() const {
    return optimizer != Home::device && (sums_away || !adds_sums_up());
  }
};

/// True if steps of both give the same bits on `ranks` ranks, or virtual ranks: their micro-batches
/// are equal, and both add gradients over micro-steps before ranks reduce them, or both after
/// (stages 2 and 3 reduce in each micro-step, except layer by layer). Sharding, homes, and what is
/// recomputed change no bits.
bool give_equal_bits(const Choices& a, const Choices& b, int ranks);

/// Returns `frame` with what the choices say about shapes, order and the units of a model.
runtime::Plan with_choices(runtime::Plan frame, const Choices& choices,
                           const std::vector<runtime::ParameterUnit>& units);

/// Returns `frame` with all that the choices say, saved values included; its mesh, virtual ranks,
/// gradient types, shape and limits stay. Builds the model's Graph of the chosen micro-batch.
/// Throws InvalidArgument if `actions` name what its blocks do not save, or send what cannot leave.
runtime::Plan with_choices(runtime::Plan frame, const Choices& choices,
                           const compile::ModelFunction& build);

}  // namespace strata::plan
