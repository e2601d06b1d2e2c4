#include "kernels/cpu/head_geometry.h"

#include <gtest/gtest.h>

#include "kernels/head_loss.h"

namespace strata::kernels {
namespace {

TEST(HeadGeometry, NeverHoldsMoreLogitsThanItsLimit) {
  for (std::int64_t v : {128, 50304, 151936})
    for (std::int64_t n : {1, 1024, 8192})
      for (DType dtype : {DType::f32, DType::bf16}) {
        const Types inputs{TensorType(dtype, {n, 64}), TensorType(dtype, {v, 64}),
                           TensorType(DType::i32, {n}), TensorType(DType::f32, {2})};
        const Attributes attributes{{"vocabulary", static_cast<double>(v)}};
        const Types outputs = head_loss_operation().infer(inputs, attributes);
        const HeadGeometry g = head_geometry(inputs, outputs, attributes, 2);
        // Rounding up to 16 rows may exceed it a little.
        EXPECT_LE(g.logits.bytes + g.rounded_gradient.bytes, (std::int64_t{128} << 20) * 11 / 10);
        EXPECT_GE(g.chunks * g.chunk_rows, n);
        EXPECT_GE(g.strips * g.strip, v);
      }
}

}  // namespace
}  // namespace strata::kernels
