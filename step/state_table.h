// Lists the persistent state of a rank (design 2.12): checkpoints, digests, the weight loader and
// tests need nothing else to know what is where.
//
// The list has all that a run needs to go on from the border between two steps, besides its
// settings and the number of samples consumed: parameters, masters, moments, and the step's
// scalars. Gradient accumulators are not state. Nothing reads them at that border (the next step's
// first micro-step overwrites them); inside a step a whole one holds this rank's own part of a sum
// that nobody owns. So a step is repeated, never resumed in the middle.
#pragma once

#include <string>
#include <vector>

#include "step/step.h"
#include "step/tensor_window.h"

namespace strata::step {

/// A window of one tensor in one kind of state, or one scalar of the step, and where this rank
/// keeps it. If a kind has one value per block of elements_per_value elements of flat space, all
/// counts and places are in these values, and a value belongs to the tensor in which its block
/// begins.
struct StateEntry {
  std::string name;     ///< Hugging Face name; for a scalar "step_state.FIELD" (kernels::StepState)
  std::string kind;     ///< "parameter", "scalar", or OptimizerState::kind
  std::string storage;  ///< name in the PersistentLayout
  runtime::Tier tier = runtime::Tier::device;
  DType dtype = DType::f32;
  std::int64_t elements_per_value = 1;  ///< parameter elements per value
  kernels::Shape shape;                 ///< whole tensor; for blocks their number; for a scalar []
  TensorWindow window;                  ///< a scalar has its one element
  std::int64_t tensor_begin = 0;        ///< the tensor's first element in flat space
  std::int64_t storage_element = 0;     ///< place of the window's first element in the storage
  runtime::Initializer initializer;
  int owner = 0;  ///< the rank that saves it, whichever other ranks keep a replica
  /// The update that made it, counted from 1 (StepState::updates); 0: as initialized or loaded.
  /// Between steps all entries have the same number: an update writes every one of them or, if its
  /// step is skipped, none (except the scalars, which count skipped steps, too).
  std::int64_t version = 0;
};

enum class StateScope : std::uint8_t {
  held,   ///< all that this rank keeps, replicas included: what loading must fill
  saved,  ///< state that this rank alone saves: over all ranks each element occurs once
};

/// Lists entries by unit, kind, tensor, owner; then the scalars in the order of StepState (none
/// without trainable units, since no step runs). `updates` becomes each entry's version. Windows
/// are ranges of their tensors; two neighbouring ones differ in owner or storage.
std::vector<StateEntry> list_state(const std::vector<runtime::ParameterUnit>& units,
                                   const StepSettings& settings, StateScope scope,
                                   std::int64_t updates);

}  // namespace strata::step
