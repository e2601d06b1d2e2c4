// Every operation runs on every backend, so that a Program planned for one can be run there.
#include <gtest/gtest.h>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/ops/operation.h"

namespace strata::kernels {
namespace {

TEST(KernelTable, HasAKernelForEveryOperation) {
  int operations = 0;
  for (const Operation* operation : all_operations()) {
    if (operation->run_by != RunBy::kernel) continue;
    ++operations;
    EXPECT_NE(cpu_kernels().find(operation->name), nullptr) << operation->name << " on the CPU";
    EXPECT_NE(cuda::cuda_kernels().find(operation->name), nullptr) << operation->name << " on CUDA";
  }
  EXPECT_GE(operations, 35);
}

TEST(KernelTable, HasNoneForOtherNames) {
  EXPECT_EQ(cpu_kernels().find("nothing"), nullptr);
  EXPECT_EQ(cuda::cuda_kernels().find("nothing"), nullptr);
}

}  // namespace
}  // namespace strata::kernels
