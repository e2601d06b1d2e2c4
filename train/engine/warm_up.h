// What a device, its libraries and its communicators load or allocate when something is used for
// the first time, all of it before the first step.
#pragma once

#include "comm/communicator.h"
#include "kernels/device/device.h"
#include "train/engine/build_programs.h"

namespace strata::train {

/// Collective over the ranks of `communicator`, the Programs' one on `device`. Runs on zeros, in an
/// arena of its own that goes again: each operation of the Programs once per shape, one collective
/// of one element per rank of each kind, and the largest of each kind. So kernels and plans of
/// libraries are loaded, peers are connected, and memory found in use afterwards is what steps find
/// beside their arena. Before arenas are made. Throws OutOfMemory, HostError, PeerError.
void warm_up(kernels::Device& device, comm::Communicator& communicator,
             const compile::StepPrograms& programs);

}  // namespace strata::train
