// Reads NAME.safetensors.index.json: which file of a folder has which tensor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace strata::train {

struct IndexEntry {
  std::string tensor;
  std::string file;  ///< a name in the index's folder
  JsonValue place;   ///< place for errors about this entry
};

/// Returns the entries in the order of the text. Throws DataError naming `file` and line, also for
/// a name that leads out of the folder.
std::vector<IndexEntry> parse_safetensors_index(std::string_view text, const std::string& file);

}  // namespace strata::train
