#include <gtest/gtest.h>

#include "comm/nccl/make_nccl_communicator.h"

namespace strata::comm {
namespace {

TEST(NcclAbsent, SaysWhatToDo) {
  EXPECT_NE(why_no_nccl().find("nvcc and nccl.h"), std::string::npos);
}

}  // namespace
}  // namespace strata::comm
