#include "kernels/select_rows.h"

#include <gtest/gtest.h>

#include "kernels/cpu/layer_kernels.h"
#include "kernels/layer_test_support.h"

namespace strata::kernels {
namespace {

TEST(SelectRows, CopiesTheRowsOfTheIndex) {
  for (DType dtype : kFloatTypes) {
    const std::vector<std::int32_t> index{4, 0, 4, 2};
    OperationCase test{select_rows_operation(),
                       select_rows_kernel,
                       {TestOperand::random(dtype, {5, 13}, 1), TestOperand::integers(index)},
                       {},
                       {{}}};
    const auto x = test.inputs[0].values();
    for (std::int32_t row : index)
      test.expected[0].insert(test.expected[0].end(), x.begin() + row * 13,
                              x.begin() + (row + 1) * 13);
    test.tolerance = 0;
    verify(test, std::string(name_of(dtype)));
  }
}

}  // namespace
}  // namespace strata::kernels
