// The persistent state of a rank as a list (design 2.12): checkpoints, digests, the weight loader
// and tests need nothing else to know what is where.
//
// What is listed is all that a run needs to go on from the border between two steps, besides its
// settings and the number of samples consumed: parameters, masters, moments, and the step's
// scalars. Gradient accumulators are not state. At that border nothing reads them (the next step's
// first micro-step overwrites them); inside a step a whole one holds this rank's own part of a sum
// that nobody owns, so a step is repeated, never resumed in the middle.
#pragma once

#include <string>
#include <vector>

#include "step/step.h"
#include "step/tensor_window.h"

namespace strata::step {

/// A window of one tensor in one kind of state, or one scalar of the step, and where this rank
/// keeps it. Of a kind that has one value per block of elements_per_value elements of flat space,
/// all counts and places are of these values, and a value belongs to the tensor in which its block
/// begins.
struct StateEntry {
  std::string name;     ///< Hugging Face name; of a scalar "step_state.FIELD" (kernels::StepState)
  std::string kind;     ///< "parameter", "scalar", or that of an OptimizerState
  std::string storage;  ///< name in the PersistentLayout
  runtime::Tier tier = runtime::Tier::device;
  DType dtype = DType::f32;
  std::int64_t elements_per_value = 1;  ///< of the parameter
  kernels::Shape shape;  ///< of the whole tensor; values of blocks: their number; a scalar: []
  TensorWindow window;   ///< of a scalar its one element
  std::int64_t tensor_begin = 0;     ///< the tensor's element 0 in the unit's flat space
  std::int64_t storage_element = 0;  ///< the window's first element in the storage
  runtime::Initializer initializer;
  int owner = 0;  ///< the rank that saves it, whoever else keeps a replica
  /// The update that made it, counted from 1: StepState::updates; 0: as initialized or loaded.
  /// Between steps one number holds for all entries: an update writes every one of them or, when
  /// its step is skipped, none (but for the scalars, which count skipped steps too).
  std::int64_t version = 0;
};

enum class StateScope : std::uint8_t {
  held,   ///< everything this rank keeps, replicas included: what loading must fill
  saved,  ///< what this rank is the one saver of: over all ranks each element occurs once
};

/// Entries in unit order: unit, kind, tensor, owner; then the scalars in the order of StepState
/// (none without trainable units: no step is made). `updates` becomes each entry's version. Windows
/// are ranges of their tensors; the owners of two neighbouring ones differ, or their storages.
std::vector<StateEntry> list_state(const std::vector<runtime::ParameterUnit>& units,
                                   const StepSettings& settings, StateScope scope,
                                   std::int64_t updates);

}  // namespace strata::step
