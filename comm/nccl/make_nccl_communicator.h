// The way to collectives over NCCL without headers of NCCL or CUDA. A build without them has the
// same functions (nccl_absent.cpp).
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "kernels/device/device.h"

namespace strata::comm {

struct NcclOptions {
  Reduction reduction = Reduction::ordered;
  /// For prepare_nccl_environment: the interface that the user names; "": NCCL chooses.
  std::string network_interface{};
  std::string host{};  ///< name of this rank's host, for people
};

/// Collective over all ranks of `host`. Makes a communicator of the same ranks for arenas on
/// `device`, a CUDA device, and enqueues on its streams (nccl_communicator.h). Uses `host` for the
/// start, for agreement and for errors; both arguments must outlive the result. Throws HostError
/// when NCCL or the device is missing; InvalidArgument, on all ranks, when two ranks use one GPU;
/// PeerError when a rank does not come; ConfigError as prepare_nccl_environment does, and, on all
/// ranks, when hosts have different versions of NCCL.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& host, kernels::Device& device,
                                                     const NcclOptions& options);

/// Returns a message for people that says why NCCL cannot be opened; "" if it can.
std::string why_no_nccl();

}  // namespace strata::comm
