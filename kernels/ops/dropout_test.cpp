#include "kernels/ops/dropout.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "kernels/cpu/layer_kernels.h"
#include "kernels/testing/dropout_reference.h"
#include "kernels/testing/layer_test_support.h"

namespace strata::kernels {
namespace {

const std::vector<std::int64_t> kRng{42, 3, 900, (std::int64_t{1} << 35) + 5};

OperationCase dropout_case(DType dtype, std::int64_t sequence, std::int64_t columns, double p) {
  return {dropout_operation(),
          dropout_kernel,
          {TestOperand::random(dtype, {2 * sequence, columns}, 1), TestOperand::integers(kRng)},
          {{"p", p}, {"key", 11}, {"sequence", static_cast<double>(sequence)}},
          {{}}};
}

// Rows have a first position that is no multiple of 4, are shorter than a block or longer than a
// part, or are whole blocks of 4 and of 8.
TEST(Dropout, AgreesWithTheReference) {
  for (const auto& [sequence, columns] : {std::pair{1, 1}, std::pair{5, 3}, std::pair{7, 50},
                                          std::pair{3, 2051}, std::pair{3, 12}, std::pair{9, 1032}})
    for (const double p : {0.1, 0.5})
      for (DType dtype : kFloatTypes) {
        OperationCase test = dropout_case(dtype, sequence, columns, p);
        const auto x = test.inputs[0].values();
        const auto factors = reference::dropout_factors(
            kRng, static_cast<std::size_t>(2 * sequence), static_cast<std::size_t>(columns),
            static_cast<std::size_t>(sequence), 11, p);
        for (std::size_t i = 0; i < x.size(); ++i) test.expected[0].push_back(x[i] * factors[i]);
        verify(test, std::to_string(columns) + " columns " + std::string(name_of(dtype)));
      }
}

TEST(Dropout, DropsAboutTheRightShare) {
  const auto y = run(dropout_case(DType::f32, 100, 500, 0.25))[0].values();
  const auto dropped = static_cast<double>(std::count(y.begin(), y.end(), 0.0));
  EXPECT_NEAR(dropped / static_cast<double>(y.size()), 0.25, 0.005);
}

TEST(Dropout, RefusesRandomNumbersOfAnotherBatch) {
  const Types types{TensorType(DType::f32, {6, 7}), TensorType(DType::i64, {4})};
  EXPECT_THROW(dropout_operation().infer(types, {{"p", 0.1}, {"key", 0}, {"sequence", 2}}),
               InvalidArgument);
}

}  // namespace
}  // namespace strata::kernels
