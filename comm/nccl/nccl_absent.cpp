#include "comm/nccl/make_nccl_communicator.h"

namespace strata::comm {

std::unique_ptr<Communicator> make_nccl_communicator(Communicator&, kernels::Device&,
                                                     const NcclOptions&) {
  throw HostError(why_no_nccl());
}

std::string why_no_nccl() {
  return "this program was built without NCCL; build it where nvcc and nccl.h are found, or let "
         "the "
         "ranks communicate through the host";
}

}  // namespace strata::comm
