// The door to collectives over NCCL; no header of NCCL or CUDA behind it. A build without them has
// the same function (nccl_absent.cpp).
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "kernels/device/device.h"

namespace strata::comm {

/// Collective over all ranks of `host`. Makes a communicator of the same ranks for arenas on
/// `device`, a CUDA device, which enqueues on its streams (nccl_communicator.h). It uses `host` for
/// the start, for agreement and for errors; both must outlive it. Throws HostError when NCCL or the
/// device is missing; InvalidArgument, on all ranks, when two ranks use one GPU; PeerError when a
/// rank does not come.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& host, kernels::Device& device,
                                                     Reduction reduction);

/// Empty where NCCL can be opened; else why not, for people.
std::string why_no_nccl();

}  // namespace strata::comm
