// Model + Plan + Machine + coordinates -> Programs: a pure function. It reads no file, asks no
// device, sends nothing, and what does not fit is part of its answer.
#pragma once

#include "comm/seat.h"
#include "compile/fit.h"
#include "compile/model.h"
#include "compile/step_programs.h"
#include "machine/machine.h"
#include "runtime/graph/plan.h"

namespace strata::compile {

struct Compiled {
  StepPrograms programs;  ///< all of them, but none where a schedule or what is kept does not fit
  Fit fit;
};

/// Graphs of all Programs that the Plan has, differentiated, sharded, placed, scheduled and laid
/// out. Equal arguments give equal Programs, to the byte. `machine`: as a rank has it, the same on
/// all ranks. Throws InvalidArgument naming the field of a Plan that is for another model, machine
/// or world, or that no pass can obey.
Compiled compile(const TrainingModel& model, const runtime::Plan& plan,
                 const machine::Machine& machine, const comm::MeshSeat& where);

/// Gathers the settings that the step's passes read, with the model's units.
step::StepSettings settings_of(const TrainingModel& model, const runtime::Plan& plan,
                               const comm::MeshSeat& where);

/// One forward pass of one sequence that leaves the logits of one row (input "rows") in storage
/// kLogits. No optimizer state is kept, nothing is scheduled.
StepPrograms compile_generation(const ModelFunction& build, const runtime::BatchShape& shape,
                                std::int64_t vocabulary, const machine::Machine& machine,
                                const comm::MeshSeat& where);

}  // namespace strata::compile
