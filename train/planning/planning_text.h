// Says for people what was planned for a target of memory.
#pragma once

#include <string>

#include "train/planning/planned_options.h"

namespace strata::train {

/// Several lines without the last newline: that drives wear out within a year, if they do; the
/// settings that were made, or that none had to be; memory per tier, seconds per step and what
/// bounds them; what each setting is for (reasons_text.h); what the limit costs; changes of bits.
std::string describe_planned(const PlannedRun& planned, const ResolvedConfig& config,
                             const MemoryBudget& budget);

/// A rate as a plain number: "5.25", "25250".
std::string rate_text(double per_second);

/// Where the times come from by which steps are foreseen: measured, if times of instructions are
/// known that runs have shown, else as the rates of the device.
machine::Source source_of_rates(const machine::Machine& machine);

}  // namespace strata::train
