// Chooses the communicator of the Programs of a device.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/nccl/make_nccl_communicator.h"
#include "kernels/device/device.h"

namespace strata::comm {

struct DeviceCommunicator {
  std::unique_ptr<Communicator> communicator;
  std::string note;  ///< message for people: why it is not the fastest one; the same on all ranks
};

/// Collective over all ranks of `host`: makes a communicator for memory of `device`. A single rank
/// needs the device alone; ranks with a CUDA device each use NCCL if all find it; others go through
/// the host (staged/staged_communicator.h). `host` always serves for the start and for errors. Both
/// arguments must outlive the result. `options` matter to NCCL only.
DeviceCommunicator make_device_communicator(Communicator& host, kernels::Device& device,
                                            const NcclOptions& options = {});

}  // namespace strata::comm
