// Implements kernels/testing/layer_test_support.h for tests on a GPU.
#include "kernels/cuda/testing/gpu/device_runner.h"
#include "kernels/testing/layer_test_support.h"

namespace strata::kernels {

std::vector<TestOperand> run(const OperationCase& test, int, std::int64_t gap) {
  return run_once(test, cuda::device_runner(cuda::tested_gpu()), {gap, false});
}

void verify(const OperationCase& test, const std::string& label) {
  const auto outputs = [&](const RunForm& form) {
    return run_once(test, cuda::device_runner(cuda::tested_gpu()), form);
  };
  const std::vector<TestOperand> first = outputs({});
  expect_close(test, first, label);
  expect_same_bits(first, outputs({}), label + ", again");
  // A library plans for strides, and another plan may have other bits.
  const bool planned = !cuda::tests_own_kernels() && test.operation.name.starts_with("attention");
  // A gap of 16 elements still allows packs of 16 bytes.
  for (const std::int64_t gap : {test.gap, std::int64_t{16}}) {
    const std::string what = label + ", " + std::to_string(gap) + " elements between rows";
    if (planned)
      expect_close(test, outputs({gap, false}), what);
    else
      expect_same_bits(first, outputs({gap, false}), what);
  }
  if (!test.operation.aliases.empty()) {
    expect_same_bits(first, outputs({0, true}), label + ", in place");
    expect_same_bits(first, outputs({5, true}), label + ", in place with strides");
  }
}

}  // namespace strata::kernels
