// The CPU under the tests of products.
#include "kernels/testing/cpu_runner.h"
#include "kernels/testing/product_test_support.h"

namespace strata::kernels::testing {

std::vector<NamedRunner> runners_of_equal_bits() {
  std::vector<NamedRunner> runners;
  for (const int threads : {1, 2, 3})
    runners.push_back({std::to_string(threads) + " threads", cpu_runner(threads)});
  return runners;
}

DType logits_type(DType) { return DType::f32; }

LogitsShape several_chunks() { return {1100, 50304}; }

}  // namespace strata::kernels::testing
