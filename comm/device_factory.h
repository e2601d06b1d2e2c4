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

/// Collective over all ranks of `host`: makes collectives on memory of `device`. A lone rank uses
/// the device alone; ranks with a CUDA device each use NCCL if all find it; others go through the
/// host (staged/staged_communicator.h), which always serves for the start and for errors. Both
/// outlive the result. `reduction` matters to NCCL only.
DeviceCommunicator make_device_communicator(Communicator& host, kernels::Device& device,
                                            Reduction reduction = Reduction::ordered);

}  // namespace strata::comm
