// When the instructions of a step run, as far as it is known before.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compile/step_programs.h"
#include "machine/machine.h"
#include "train/report/program_timeline.h"

namespace strata::train {

/// What a simulation, or less than that, says of a step.
struct ForeseenStep {
  double seconds = 0;
  std::string how;                                     ///< for people
  std::map<std::string, std::vector<TimeSpan>> spans;  ///< by name of the training Program
};

/// Every instruction takes the time that it needs alone on the machine; it begins when its queue
/// and what it waits for are done. The step takes what its Programs say (Program::foreseen_ns).
ForeseenStep foresee_alone(const compile::StepPrograms& programs, const machine::Machine& machine);

/// The same of one Program.
std::vector<TimeSpan> foresee_alone(const runtime::Program& program,
                                    const machine::Machine& machine);

}  // namespace strata::train
