#include "kernels/ops/select_rows.h"

#include <gtest/gtest.h>

#include "kernels/cpu/layer_kernels.h"
#include "kernels/testing/layer_test_support.h"
#include "kernels/testing/test_runner.h"

namespace strata::kernels {
namespace {

OperationCase select_case(DType dtype, std::int64_t columns,
                          const std::vector<std::int32_t>& index) {
  return {select_rows_operation(),
          select_rows_kernel,
          {TestOperand::random(dtype, {5, columns}, 1), TestOperand::integers(index)},
          {},
          {{}}};
}

// Rows of whole packs and others, in one block of threads and several.
TEST(SelectRows, CopiesTheRowsOfTheIndex) {
  for (const std::int64_t columns : {13, 16, 4096})
    for (DType dtype : kFloatTypes) {
      const std::vector<std::int32_t> index{4, 0, 4, 2};
      OperationCase test = select_case(dtype, columns, index);
      const auto x = test.inputs[0].values();
      for (std::int32_t row : index)
        test.expected[0].insert(test.expected[0].end(), x.begin() + row * columns,
                                x.begin() + (row + 1) * columns);
      test.tolerance = 0;
      verify(test, std::to_string(columns) + " columns " + std::string(name_of(dtype)));
    }
}

TEST(SelectRowsDeathTest, EndsTheProcessAtARowThatIsNotThere) {
  if (runs_on_gpu()) GTEST_SKIP() << "a kernel that traps would spoil the GPU for other tests";
  EXPECT_DEATH(run(select_case(DType::f32, 4, {0, 5})), "");
  EXPECT_DEATH(run(select_case(DType::f32, 4, {-1})), "");
}

}  // namespace
}  // namespace strata::kernels
