// Makes the Programs of a run: its options become a Plan, the search chooses what the options leave
// open, and what does not fit becomes an error. Needs the model's shapes alone, no weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/seat.h"
#include "compile/compile.h"
#include "core/beat.h"
#include "machine/machine.h"
#include "plan/find_plan.h"
#include "train/config/options.h"
#include "train/models/transformer.h"

namespace strata::train {

struct ProgramRequest {
  ModelConfig model;
  TrainOptions options;
  bool evaluate = false;
  int local_ranks = 1;  ///< ranks on this machine, which share its memory
  runtime::SaveMemory saving = runtime::SaveMemory::none;
  bool scheduled = true;                             ///< Plan::scheduled
  std::vector<std::int64_t> shorter_sequences = {};  ///< Plan::shorter_sequences
  Beat beat = {};  ///< told of each Graph that is built: searches build many
};

/// The ways of saving that the options allow, the one that disturbs training least first.
std::vector<runtime::SaveMemory> savings_of(const TrainOptions& options);

/// All that compiling must know about the model and its training.
compile::TrainingModel training_model(const ProgramRequest& request);

/// The Plan that the options ask for with `world` ranks, without the choices that choices_of
/// returns. Throws InvalidArgument naming the fields of options and model that no run can have.
runtime::Plan requested_frame(const ProgramRequest& request, const machine::Machine& machine,
                              int world);

/// requested_frame with the options' choices; the search makes the remaining ones. Throws as it
/// does.
runtime::Plan requested_plan(const ProgramRequest& request, const compile::TrainingModel& model,
                             const machine::Machine& machine, int world);

/// Compiles the Plan that plan::find_plan finds for the request, or the one in the file
/// TrainOptions::plan, which may not fit. plan::Search explains `savings` and `accepts`. Throws as
/// requested_plan does, ConfigError naming file and field where a Plan is for another run, and
/// OutOfMemory naming the field of a file whose limit is too small.
compile::Compiled plan_programs(const ProgramRequest& request, const comm::Seat& seat,
                                const machine::Machine& machine,
                                const std::vector<runtime::SaveMemory>& savings,
                                const plan::Accepts& accepts = {});

/// Says which memory is lacking and which settings provide it; empty if all fits.
std::string lacking_memory(const compile::Fit& fit, const ProgramRequest& request);

/// Throws OutOfMemory with what is lacking, unless all fits.
void require_fit(const compile::Fit& fit, const ProgramRequest& request);

/// The Programs of the best Plan that saves as ProgramRequest::saving says. SaveMemory::windows
/// needs four windows of pinned memory more than SaveMemory::writing, and memory for the pieces
/// that travel between ranks. `machine` must be the same on all ranks. Throws InvalidArgument as
/// requested_plan does, and OutOfMemory.
compile::StepPrograms build_programs(const ProgramRequest& request, const comm::Seat& seat,
                                     const machine::Machine& machine);

/// Compiles the Programs that generate text (compile_generation): a model without training.
compile::StepPrograms build_generation(const ModelConfig& model, const BatchShape& shape,
                                       const comm::Seat& seat, const machine::Machine& machine);

}  // namespace strata::train
