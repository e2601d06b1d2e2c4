// Implements kernels/testing/product_test_support.h for tests on a GPU.
#include "kernels/testing/product_test_support.h"

namespace strata::kernels::testing {

std::vector<NamedRunner> runners_of_equal_bits() { return all_runners(); }

DType logits_type(DType x) { return x; }

LogitsShape several_chunks() { return {4200, 1024}; }

}  // namespace strata::kernels::testing
