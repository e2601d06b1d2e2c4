// Measures what the instructions of an engine's Programs take, before its first step.
#pragma once

#include "machine/machine.h"
#include "machine/operation_times.h"
#include "runtime/execute/trace.h"
#include "runtime/program/rehearsal.h"
#include "train/engine/engine.h"

namespace strata::train {

/// Collective: all ranks measure at the same time, as they work in a step. Runs each kind of
/// instruction of the training Programs a few times, before weights are loaded, and returns the
/// median of each; of collectives the least, since waiting for peers is part of the others. `of`:
/// who knows when an instruction ran. Throws what a step would.
machine::OperationTimes rehearse(Engine& engine, const machine::Machine& machine,
                                 runtime::TraceOf of, runtime::RehearsalLimits limits = {});

}  // namespace strata::train
