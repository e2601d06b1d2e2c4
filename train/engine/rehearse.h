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

/// Collective: all ranks measure at the same time, as they work in a step. Runs each kind of
/// instruction of the training Programs a few times, before weights are loaded, and returns the
/// typical time of each (KindTimes). `of`: who knows when an instruction ran. Throws what a step
/// would.
machine::OperationTimes rehearse(Engine& engine, const machine::Machine& machine,
                                 runtime::TraceOf of, runtime::RehearsalLimits limits = {});

}  // namespace strata::train
