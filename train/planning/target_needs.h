// Says which target of memory a step needs, and whether the machine has what it takes.
#pragma once

#include <cstdint>
#include <string>

#include "plan/memory_needs.h"
#include "plan/planner.h"
#include "train/config/resolve.h"
#include "train/planning/memory_budget.h"

namespace strata::train {

/// "5.20 GiB of the device, 40.10 GiB of host memory per rank": all that one rank takes.
/// `of_target`: what else to say in brackets of the memory that a target names.
std::string needs_text(const plan::MemoryNeeds& needs, const MemoryBudget& budget,
                       const std::string& of_target = "");

/// Returns what one rank lacks for the plan of memories that no target names: those of the host of
/// a device, and of the drives.
plan::MemoryNeeds lacking_beside(const plan::MemoryNeeds& needs, const MemoryBudget& budget);

/// True if the machine cannot give a target of so many bytes.
bool is_beyond(std::int64_t target, const MemoryBudget& budget);

/// The smallest target with which the strategy of `config` accepts `smallest`, rounded up by less
/// than a hundredth.
std::int64_t least_target(const plan::PlannedStep& smallest, const ResolvedConfig& config,
                          const MemoryBudget& budget);

/// A target as one types it: "24GB", "55.5MB".
std::string target_size_text(std::int64_t bytes);

/// The --host-memory that `step` takes of a CPU, in whole MB, if the one that was given is too
/// little for it, whatever the target; 0: it suffices.
std::int64_t needed_host_limit(const plan::PlannedStep& step, const ResolvedConfig& config,
                               const MemoryBudget& budget);

/// True if the machine has the memory that `step` needs, and no limit beside the target keeps it
/// from that.
bool is_to_be_had(const plan::PlannedStep& step, const ResolvedConfig& config,
                  const MemoryBudget& budget);

}  // namespace strata::train
