// Tests that every operation has a kernel in each backend, so that each can run any Program.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/workspaces.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/workspaces.h"
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

TEST(Workspaces, NameEachAnOperationOnce) {
  for (const auto rows : {cpu_workspaces(), cuda_workspaces()}) {
    std::set<std::string_view> names;
    for (const WorkspaceRow& row : rows) {
      EXPECT_TRUE(names.insert(row.operation).second) << row.operation << " twice";
      EXPECT_TRUE(std::ranges::any_of(all_operations(), [&](const Operation* operation) {
        return operation->name == row.operation;
      })) << row.operation;
    }
  }
}

TEST(KernelTable, HasNoneForOtherNames) {
  EXPECT_EQ(cpu_kernels().find("nothing"), nullptr);
  EXPECT_EQ(cuda::cuda_kernels().find("nothing"), nullptr);
}

}  // namespace
}  // namespace strata::kernels
