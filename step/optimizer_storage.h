// The state that the optimizer keeps for a unit, and where a rank keeps it: on the device one
// storage per kind; elsewhere one record [master or remainder | moments | scales] per tile, which
// moves as a whole.
#pragma once

#include <string>
#include <vector>

#include "step/step.h"
#include "zero/partition.h"

namespace strata::step {

/// One kind of state that the optimizer keeps for a trainable unit, besides the parameter.
struct OptimizerState {
  const char* kind;  ///< "master", "remainder", "moment1", "moment2", "moment1_scale", ...
  std::string (*storage)(const std::string& unit);  ///< storage name (runtime/graph/state_names.h)
  DType dtype;
  std::int64_t elements_per_value = 1;  ///< block size; blocks start at its multiples
};
/// Returns the states in the order of the optimizer operation's operands. If there is no "master",
/// the operation has the parameter before them, in place. Empty for a unit that is not trained.
std::vector<OptimizerState> optimizer_states(const runtime::UnitRecipe& recipe);
/// True if the first of the states is a "master".
bool keeps_master_copy(const runtime::UnitRecipe& recipe);
/// A stretch of a unit's flat space whose optimizer state lies together and is updated together.
struct OptimizerTile {
  zero::ElementRange range;
  runtime::Tier tier = runtime::Tier::device;  ///< state's tier; the host updates it off the device
};

/// Returns this rank's tiles of one trainable unit, ascending. Tiles end at multiples of
/// `TransferLimits::tile_elements` in flat space, at the ends of the rank's part, and where the
/// part that the Plan leaves on the device ends.
std::vector<OptimizerTile> optimizer_tiles(const runtime::ParameterUnit& unit,
                                           const runtime::UnitPlan& plan,
                                           const zero::OwnedUnit& owned,
                                           const StepSettings& settings);

/// One kind of state of one tile.
struct StateStorage {
  const char* kind;
  std::int64_t elements_per_value;  ///< see OptimizerState
  std::string name;                 ///< the persistent storage that contains it
  kernels::TensorType storage_type;
  runtime::Tier tier;
  DType dtype;
  std::int64_t offset_bytes;  ///< offset of the tile's first element in the storage
};

/// Returns the tile's states in the order of optimizer_states.
std::vector<StateStorage> state_storages(const runtime::ParameterUnit& unit,
                                         const runtime::UnitPlan& plan,
                                         const zero::OwnedUnit& owned, const OptimizerTile& tile);

}  // namespace strata::step
