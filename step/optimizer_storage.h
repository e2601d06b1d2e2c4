// What state the optimizer keeps of a unit, and where a rank keeps it: on the device one storage
// per kind; elsewhere one record [master or remainder | moments | scales] per tile, which moves as
// a whole.
#pragma once

#include <string>
#include <vector>

#include "step/step.h"
#include "zero/partition.h"

namespace strata::step {

/// One kind of state that the optimizer keeps of a trainable unit, besides the parameter.
struct OptimizerState {
  const char* kind;  ///< "master", "remainder", "moment1", "moment2", "moment1_scale", ...
  std::string (*storage)(const std::string& unit);  ///< its name (runtime/graph/state_names.h)
  DType dtype;
  std::int64_t elements_per_value = 1;  ///< of the unit's flat space; they start at its multiples
};
/// In the order of the optimizer operation's operands. Where there is no "master" the operation
/// has the parameter, in place, in front of them. None of a unit that is not trained.
std::vector<OptimizerState> optimizer_states(const runtime::UnitRecipe& recipe);
/// Is the first of them a "master"?
bool keeps_master_copy(const runtime::UnitRecipe& recipe);
/// A stretch of a unit's flat space whose optimizer state lies and is updated together.
struct OptimizerTile {
  zero::Extent extent;
  runtime::Tier tier = runtime::Tier::device;  ///< of its state; off the device the host updates it
};

/// This rank's tiles of one trainable unit, ascending. Borders are multiples of
/// `TransferLimits::tile_elements` in flat space, the ends of the rank's part, and the end of what
/// the Plan leaves on the device.
std::vector<OptimizerTile> optimizer_tiles(const runtime::ParameterUnit& unit,
                                           const runtime::UnitPlan& plan,
                                           const zero::OwnedUnit& owned,
                                           const StepSettings& settings);

/// One kind of state of one tile.
struct StateStorage {
  const char* kind;
  std::int64_t elements_per_value;  ///< as in OptimizerState
  std::string name;                 ///< of the persistent storage that it is a part of
  kernels::TensorType storage_type;
  runtime::Tier tier;
  DType dtype;
  std::int64_t offset_bytes;  ///< of the tile's first element, in the storage
};

/// In the order of optimizer_states.
std::vector<StateStorage> state_storages(const runtime::ParameterUnit& unit,
                                         const runtime::UnitPlan& plan,
                                         const zero::OwnedUnit& owned, const OptimizerTile& tile);

}  // namespace strata::step
