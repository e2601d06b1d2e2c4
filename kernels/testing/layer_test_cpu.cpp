// The CPU backend under test.
#include "kernels/cpu/simd_targets.h"
// simd_targets.h comes before Highway, which reads it.
#include "hwy/highway.h"
#include "kernels/testing/cpu_runner.h"
#include "kernels/testing/layer_test_support.h"
#include "kernels/testing/target_scope.h"

namespace strata::kernels {
namespace {

/// Checks that the outputs are close to the expected ones and have the same bits with 1 to 3
/// threads, with gaps between rows and in place; returns those of one thread.
std::vector<TestOperand> verify_target(const OperationCase& test, const std::string& label) {
  const auto outputs = [&](int threads, const RunForm& form) {
    return run_once(test, cpu_runner(threads, test.kernel), form);
  };
  std::vector<TestOperand> first = outputs(1, {});
  expect_close(test, first, label);
  expect_same_bits(first, outputs(2, {}), label + ", 2 threads");
  expect_same_bits(first, outputs(3, {7, false}), label + ", 3 threads and strides");
  if (!test.operation.aliases.empty()) {
    expect_same_bits(first, outputs(2, {0, true}), label + ", in place");
    expect_same_bits(first, outputs(1, {5, true}), label + ", in place with strides");
  }
  return first;
}

}  // namespace

std::vector<TestOperand> run(const OperationCase& test, int threads, std::int64_t gap) {
  return run_once(test, cpu_runner(threads, test.kernel), {gap, false});
}

void verify(const OperationCase& test, const std::string& label) {
  std::vector<TestOperand> wide;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const TargetScope scope(target);
    std::vector<TestOperand> outputs = verify_target(test, label + ", " + hwy::TargetName(target));
    if (target == HWY_AVX2 && !wide.empty())
      expect_same_bits(wide, outputs, label + ", AVX2 and AVX-512");
    if (target == HWY_AVX3) wide = std::move(outputs);
  }
}

}  // namespace strata::kernels
