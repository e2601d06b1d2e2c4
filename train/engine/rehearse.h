// Measures what the instructions of an engine's Programs take, before its first step.
#pragma once

#include <vector>

#include "machine/machine.h"
#include "machine/operation_times.h"
#include "runtime/execute/trace.h"
#include "runtime/program/rehearsal.h"
#include "train/engine/engine.h"

namespace strata::train {

/// Returns rehearsals of the training Programs' kinds that `machine` has no times of, of all
/// Programs one run of each kind first, and then, as far as `limits.seconds` go, the other ones: so
/// no kind that fits is left out for repeats of others.
std::vector<runtime::Rehearsal> list_rehearsals(const compile::StepPrograms& programs,
                                                const machine::Machine& machine,
                                                runtime::RehearsalLimits limits);

/// Returns rehearsals that bring a device to the clock that it has in steps: several turns of each
/// kind but collectives, measured or not.
std::vector<runtime::Rehearsal> list_warm_ups(const compile::StepPrograms& programs,
                                              machine::Machine machine);

/// Collective: all ranks measure at the same time, as they work in a step. Runs each kind of
/// instruction of the training Programs a few times, before weights are loaded, and returns the
/// typical time of each (KindTimes). A GPU works for a second first: its clock falls where its
/// power limit does not allow the highest one, and steps run at the lower one. `of`: who knows when
/// an instruction ran. Throws what a step would.
machine::OperationTimes rehearse(Engine& engine, const machine::Machine& machine,
                                 runtime::TraceOf of, runtime::RehearsalLimits limits = {});

}  // namespace strata::train
