// Which communicator the Programs of a device get.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "kernels/device/device.h"

namespace strata::comm {

struct DeviceCommunicator {
  std::unique_ptr<Communicator> communicator;
  std::string note;  ///< for people: why it is not the fastest one; the same on all ranks
};

/// Collective over all ranks of `host`: collectives on memory of `device`. One rank: on the device
/// alone. CUDA devices that no two ranks share, where all ranks find NCCL: NCCL. Else through the
/// host (staged/staged_communicator.h), which serves for the start and for errors in any case. Both
/// outlive the result. `reduction` matters to NCCL alone.
DeviceCommunicator make_device_communicator(Communicator& host, kernels::Device& device,
                                            Reduction reduction = Reduction::ordered);

}  // namespace strata::comm
