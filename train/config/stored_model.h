// What is known of a model whose weights are stored, before its options are resolved.
#pragma once

#include <optional>
#include <string>

#include "core/dtype.h"

namespace strata::train {

struct StoredModel {
  bool has_weights = false;  ///< false: weights are made from the seed, nothing else means a thing
  std::string name;          ///< of its folder
  std::optional<DType> dtype;  ///< of its weights, where training can run in it
};

}  // namespace strata::train
