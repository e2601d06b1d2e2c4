// From what a run asks for to its Programs: options become a Plan, the search closes what is open
// in it, and what does not fit becomes an error. Shapes alone are read, no weight.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/seat.h"
#include "compile/compile.h"
#include "core/error.h"
#include "machine/machine.h"
#include "plan/find_plan.h"
#include "train/config/options.h"
#include "train/models/transformer.h"

namespace strata::train {

struct ProgramRequest {
  ModelConfig model;
  TrainOptions options;
  bool evaluate = false;
  int local_ranks = 1;  ///< of this machine: they share its memory
  runtime::SaveMemory saving = runtime::SaveMemory::none;
  bool scheduled = true;                             ///< Plan::scheduled
  std::vector<std::int64_t> shorter_sequences = {};  ///< Plan::shorter_sequences
};

/// A Plan of a file that allows its run less than it needs.
class PlanFileLimit : public OutOfMemory {
  using OutOfMemory::OutOfMemory;
};

/// The ways of saving that a run has, the fastest first.
std::vector<runtime::SaveMemory> savings_of(const TrainOptions& options);

/// What compiling must know of model and training.
compile::TrainingModel training_model(const ProgramRequest& request);

/// The Plan that is asked for, for `world` ranks, but for what choices_of the options says. Throws
/// InvalidArgument that names the fields of options and model that can be no run's.
runtime::Plan plan_frame(const ProgramRequest& request, const machine::Machine& machine, int world);

/// The Plan that is asked for; the search closes what is open in it. Throws as plan_frame does.
runtime::Plan requested_plan(const ProgramRequest& request, const compile::TrainingModel& model,
                             const machine::Machine& machine, int world);

/// Compiles the Plan that plan::find_plan finds for the request, or that of the file
/// TrainOptions::plan, which may not fit. `savings`, `accepts`: plan::Search. Throws as
/// requested_plan does, ConfigError naming file and field of a Plan for another run, and
/// PlanFileLimit naming the field that allows too little.
compile::Compiled plan_programs(const ProgramRequest& request, const comm::Seat& seat,
                                const machine::Machine& machine,
                                const std::vector<runtime::SaveMemory>& savings,
                                const plan::Accepts& accepts = {});

/// Throws OutOfMemory saying what lacks, and which settings give it, unless all fits.
void require_fit(const compile::Fit& fit, const ProgramRequest& request);

/// The Programs of the best Plan with ProgramRequest::saving. runtime::SaveMemory::windows costs
/// four windows of pinned memory more than runtime::SaveMemory::writing, and what travels between
/// ranks. `machine`: as a rank has it, the same on all ranks. Throws InvalidArgument as
/// requested_plan does, OutOfMemory.
compile::StepPrograms build_programs(const ProgramRequest& request, const comm::Seat& seat,
                                     const machine::Machine& machine);

/// compile_generation of a model without training.
compile::StepPrograms build_generation(const ModelConfig& model, const BatchShape& shape,
                                       const comm::Seat& seat, const machine::Machine& machine);

}  // namespace strata::train
