// Implements kernels/testing/layer_test_support.h for tests on the simulated device.
#include "kernels/cuda/testing/simulated/simulated_runner.h"
#include "kernels/testing/layer_test_support.h"

namespace strata::kernels {

using cuda::simulated_runner;

std::vector<TestOperand> run(const OperationCase& test, int threads, std::int64_t gap) {
  return run_once(
      test,
      simulated_runner(threads == 1 ? cuda::ThreadOrder::forward : cuda::ThreadOrder::backward),
      {gap, false});
}

void verify(const OperationCase& test, const std::string& label) {
  const auto outputs = [&](cuda::ThreadOrder order, const RunForm& form) {
    return run_once(test, simulated_runner(order), form);
  };
  const std::vector<TestOperand> first = outputs(cuda::ThreadOrder::forward, {});
  expect_close(test, first, label);
  expect_same_bits(first, outputs(cuda::ThreadOrder::backward, {}), label + ", threads backward");
  expect_same_bits(first, outputs(cuda::ThreadOrder::shuffled, {test.gap, false}),
                   label + ", threads shuffled and strides");
  // A gap of 16 elements still allows packs of 16 bytes.
  expect_same_bits(first, outputs(cuda::ThreadOrder::shuffled, {16, false}),
                   label + ", aligned strides");
  if (!test.operation.aliases.empty()) {
    expect_same_bits(first, outputs(cuda::ThreadOrder::backward, {0, true}), label + ", in place");
    expect_same_bits(first, outputs(cuda::ThreadOrder::forward, {5, true}),
                     label + ", in place with strides");
  }
}

}  // namespace strata::kernels
