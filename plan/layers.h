// Finds the blocks of a model that are its layers.
#pragma once

#include <string>
#include <vector>

namespace strata::plan {

/// Returns the indices of the blocks whose names say that they are layers ("layer.3").
inline std::vector<int> layers_of(const std::vector<std::string>& blocks) {
  std::vector<int> layers;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (blocks[i].starts_with("layer.")) layers.push_back(static_cast<int>(i));
  return layers;
}

}  // namespace strata::plan
