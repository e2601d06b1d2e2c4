// Prints what `plan` found for each machine, as a table or as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/planning/planned_options.h"

namespace strata::train {

/// One machine that was planned for.
struct PlannedMachine {
  std::string name;          ///< as in --hardware; "here" for this machine
  machine::Machine machine;  ///< all of it; budget.machine is what one rank has
  MemoryBudget budget;
  ResolvedConfig asked;
  ResolvedConfig config;  ///< with what was planned
  PlannedRun planned;
  std::string refusal;        ///< why there is no plan; empty: there is one
  double price_per_hour = 0;  ///< of a device; 0: not known

  /// Tokens of a step over all ranks; cost of a billion tokens. Both need a plan.
  [[nodiscard]] double tokens_per_second() const;
  [[nodiscard]] double cost_of_billion() const;
  /// Bytes that all ranks of a host write to its drives in a step.
  [[nodiscard]] double written_per_step() const;
  /// Days of training after which the drives are worn out (their TBW written); 0: never, or not
  /// known.
  [[nodiscard]] double days_of_drives() const;
};

/// A line about the bytes written to the drives of a host per step, and the days until these are
/// worn out; "": nothing is written.
std::string drive_wear_text(const PlannedMachine& machine);

/// A line about the time, and the cost, of all steps with evaluations and saves on the way, if the
/// number of steps is given; "": it is not.
std::string whole_run_text(const PlannedMachine& machine);

/// A line per machine: ranks, hosts that they use, memory, seconds per step, tokens/s, what binds,
/// slowdown, cost.
std::string plan_table(const std::vector<PlannedMachine>& machines);

/// The same as a JSON array, with the settings, bytes per tier, and what single settings save and
/// cost (train/planning/reasons_text.h). `explains`: also what was compared.
std::string plan_json(const std::vector<PlannedMachine>& machines, bool explains);

}  // namespace strata::train
