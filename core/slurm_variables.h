// The grammar of variables that Slurm sets for jobs and their steps.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace strata {

/// Parses counts of successive nodes, as in "4(x2),3": 4, 4, 3. nullopt: it is no such list, or has
/// a count outside of 1 to `most_of_node`, or more than 65,536 nodes.
std::optional<std::vector<int>> parse_slurm_counts(std::string_view text, int most_of_node);

/// True if SLURM_STEP_ID has this value inside of a step that srun started. A batch script and an
/// interactive shell have none, or a number from 0xfffffff0 up.
bool is_step_of_srun(std::string_view step_id);

}  // namespace strata
