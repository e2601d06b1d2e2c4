// Compiles model, Plan, Machine and coordinates to Programs. This is a pure function: it reads no
// file, asks no device, sends nothing, and what does not fit is part of its answer.
#pragma once

#include "comm/seat.h"
#include "compile/fit.h"
#include "compile/model.h"
#include "compile/step_programs.h"
#include "machine/machine.h"
#include "runtime/graph/plan.h"
#include "runtime/schedule/schedule.h"

namespace strata::compile {

struct Compiled {
  StepPrograms programs;  ///< empty if a schedule or the state that is kept does not fit
  Fit fit;
  /// Instructions that were compiled; one that was scheduled counts as kScheduledWork, or as less
  /// where that was rough.
  std::int64_t work = 0;
};

/// Scheduling an instruction and finding its place takes about as long as compiling so many without
/// a schedule.
inline constexpr std::int64_t kScheduledWork = 8;

/// How long schedules look for places: rough Programs are to be compared with others, not to be
/// run.
using Effort = runtime::ScheduleEffort;

/// Builds the Graphs of all Programs that the Plan has, differentiates, shards, places and
/// schedules them, and lays them out. Equal arguments give equal Programs, to the byte. `machine`
/// must be the same on all ranks. Throws InvalidArgument, naming the Plan's field, if the Plan is
/// for another model, machine or world, or no pass can obey it.
Compiled compile(const TrainingModel& model, const runtime::Plan& plan,
                 const machine::Machine& machine, const comm::MeshSeat& where,
                 Effort effort = Effort::full);

/// Makes, as compile() does, only those Programs that decide how fast steps are and what they need:
/// the micro-steps of Plan::shape, and what runs between steps.
Compiled compile_step(const TrainingModel& model, const runtime::Plan& plan,
                      const machine::Machine& machine, const comm::MeshSeat& where,
                      Effort effort = Effort::full);

/// Adds the Programs that compile_step left out, and so returns what compile() does. compile_step
/// has checked the Machine.
Compiled compile_rest(const TrainingModel& model, StepPrograms step,
                      const machine::Machine& machine, const comm::MeshSeat& where,
                      Effort effort = Effort::full);

/// Gathers the settings that the step's passes read.
step::StepSettings settings_of(const TrainingModel& model, const runtime::Plan& plan,
                               const comm::MeshSeat& where);

/// Compiles the forward pass of one sequence, which leaves the logits of one row (input "rows") in
/// storage kLogits. It keeps no optimizer state, and nothing is scheduled.
StepPrograms compile_generation(const ModelFunction& build, const runtime::BatchShape& shape,
                                std::int64_t vocabulary, const machine::Machine& machine,
                                const comm::MeshSeat& where);

}  // namespace strata::compile
