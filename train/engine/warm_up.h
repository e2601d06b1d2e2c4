// Does before the first step what devices, libraries and communicators do at first use.
#pragma once

#include "comm/communicator.h"
#include "core/beat.h"
#include "kernels/device/device.h"
#include "train/engine/build_programs.h"

namespace strata::train {

/// Collective over the ranks of `communicator`, the Programs' one on `device`; called before arenas
/// are made. In a temporary arena of zeros it runs each operation of the Programs once per shape,
/// and of each kind of collective the smallest (one element per rank) and the largest. This loads
/// kernels and the libraries' plans and connects peers, so that the memory then in use is what
/// steps will find in use besides their arenas. Beats after each. Throws OutOfMemory, HostError,
/// PeerError.
void warm_up(kernels::Device& device, comm::Communicator& communicator,
             const compile::StepPrograms& programs, const Beat& beat = {});

}  // namespace strata::train
