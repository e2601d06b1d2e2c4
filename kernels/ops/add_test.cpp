#include "kernels/ops/add.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "kernels/cpu/layer_kernels.h"
#include "kernels/testing/layer_test_support.h"

namespace strata::kernels {
namespace {

TEST(Add, AgreesWithTheReference) {
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 5}, Shape{33, 1031}, Shape{7, 3, 20}})
    for (DType dtype : kFloatTypes) {
      OperationCase test{
          add_operation(),
          add_kernel,
          {TestOperand::random(dtype, shape, 1), TestOperand::random(dtype, shape, 2)},
          {},
          {{}}};
      const auto a = test.inputs[0].values(), b = test.inputs[1].values();
      for (std::size_t i = 0; i < a.size(); ++i) test.expected[0].push_back(a[i] + b[i]);
      verify(test, shape.to_string() + std::string(name_of(dtype)));
    }
}

TEST(Add, RefusesDifferentShapes) {
  const Types types{TensorType(DType::f32, {2, 7}), TensorType(DType::f32, {2, 8})};
  EXPECT_THROW(add_operation().infer(types, {}), InvalidArgument);
}

}  // namespace
}  // namespace strata::kernels
