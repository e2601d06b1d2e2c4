// The persistent state of a rank as a list (design 2.12): checkpoints, digests, the weight loader
// and tests need nothing else to know what is where.
#pragma once

#include <string>
#include <vector>

#include "zero/step.h"

namespace strata::zero {

/// Elements [first_element, first_element + elements) of one tensor in one kind of state, and where
/// this rank keeps them.
struct StateEntry {
  std::string name;     ///< Hugging Face name
  std::string kind;     ///< "parameter", "master", "moment1", "moment2"
  std::string storage;  ///< name in the PersistentLayout
  runtime::Tier tier = runtime::Tier::device;
  DType dtype = DType::f32;
  kernels::Shape shape;  ///< of the whole tensor
  std::int64_t first_element = 0;
  std::int64_t elements = 0;
  std::int64_t unit_element = 0;     ///< first_element in the unit's flat space
  std::int64_t storage_element = 0;  ///< first_element in the storage
  runtime::Initializer initializer;
};

enum class StateScope : std::uint8_t {
  held,   ///< everything this rank keeps, replicas included: what loading must fill
  saved,  ///< what this rank is the one saver of: over all ranks each element occurs once
};

std::vector<StateEntry> list_state(const std::vector<runtime::ParameterUnit>& units,
                                   const StepSettings& settings, StateScope scope);

}  // namespace strata::zero
