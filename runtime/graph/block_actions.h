// Says what becomes of saved values, block by block, as data and as JSON: in a Plan's `saved`, and
// in settings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json.h"

namespace strata::runtime {

/// The fate of a value between the forward and the backward pass.
enum class SavedAction : std::uint8_t {
  keep,       ///< stays on the device
  recompute,  ///< is freed, and computed again for its first use
  host,       ///< waits in pinned memory
  disk,       ///< waits on the disk
};
std::string_view name_of(SavedAction action);

/// Actions on the values that each of the equal blocks [first_block, last_block] saves
/// (runtime/passes/saved_values.h). Values that are not named are kept.
struct BlockActions {
  int first_block = 0;
  int last_block = 0;
  std::vector<std::pair<std::string, SavedAction>> actions;  ///< by the value's name in its block
  bool operator==(const BlockActions&) const = default;
};

/// True if any value has this action.
bool has_action(const std::vector<BlockActions>& saved, SavedAction action);

/// Drops what is kept, which need not be named, and ranges that name nothing more; joins adjacent
/// ranges that say the same.
std::vector<BlockActions> without_kept(const std::vector<BlockActions>& saved);

/// Writes a range on one line: {"blocks": [1, 2], "actions": {"0.norm": "recompute"}}.
std::string to_json(const BlockActions& range);
/// Writes a list of ranges on one line.
std::string to_json(const std::vector<BlockActions>& saved);

/// Inverse of to_json: reads a list of ranges. Throws the document's error, which names path and
/// what is expected, for anything else: a range that does not come after the one before, an unknown
/// action, another key.
std::vector<BlockActions> block_actions_of(const JsonValue& list);
/// Reads the text of such a list. Throws ConfigError whose lines are those of `file`.
std::vector<BlockActions> read_block_actions(std::string_view text, const std::string& file);

}  // namespace strata::runtime
