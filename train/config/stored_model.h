// Facts about a model with stored weights, known before its options are resolved.
#pragma once

#include <optional>
#include <string>

#include "core/dtype.h"

namespace strata::train {

struct StoredModel {
  bool has_weights = false;    ///< false: weights are made from the seed, other fields do not count
  std::string name;            ///< name of the model's folder
  std::optional<DType> dtype;  ///< type of the weights, if training can run in it
};

}  // namespace strata::train
