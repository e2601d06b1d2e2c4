// Says when the instructions of a step will run, as the simulator foresees it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compile/step_programs.h"
#include "machine/machine.h"
#include "train/report/program_timeline.h"

namespace strata::train {

struct ForeseenStep {
  double seconds = 0;
  std::string how;  ///< for people
  /// Spans by name of the training Program, counted from the begin of its first instruction.
  std::map<std::string, std::vector<TimeSpan>> spans;
};

/// Simulates steps (plan/foresee.h) until two take equally long, and keeps the last one's times.
ForeseenStep foresee_step(const compile::StepPrograms& programs, const machine::Machine& machine);

}  // namespace strata::train
