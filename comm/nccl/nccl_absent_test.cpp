#include <gtest/gtest.h>

#include "comm/nccl/make_nccl_communicator.h"
#include "comm/single.h"

namespace strata::comm {
namespace {

TEST(NcclAbsent, SaysWhatToDo) {
  SingleCommunicator host;
  try {
    make_nccl_communicator(host, 0);
    ADD_FAILURE() << "a build without NCCL made a communicator";
  } catch (const HostError& error) {
    EXPECT_NE(std::string(error.what()).find("nvcc and nccl.h"), std::string::npos);
  }
}

}  // namespace
}  // namespace strata::comm
