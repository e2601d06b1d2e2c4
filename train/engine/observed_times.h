// Times of kinds of instructions as steps show them, beside all else that happens in a step.
#pragma once

#include "compile/step_programs.h"
#include "machine/machine.h"
#include "machine/operation_times.h"
#include "runtime/execute/trace.h"

namespace strata::train {

/// Returns, of the kinds that `recorder` saw in training Programs, the times alone with which a
/// simulated instruction takes as long as the recorded ones did in the mean (KindTimes::mean).
/// Where the simulator lets a kind wait for a share of something (plan/foresee.h), this is less
/// than what was recorded, in the same part; what it knows nothing of (caches, other processes,
/// other ranks' threads) stays in the time. Leaves out transfers of a disk, copies that a step may
/// not want, and runs of instructions that it did not want. `machine` foresees; its recording
/// executor is idle.
machine::OperationTimes observed_times(const runtime::TraceRecorder& recorder,
                                       const compile::StepPrograms& programs,
                                       const machine::Machine& machine);

}  // namespace strata::train
