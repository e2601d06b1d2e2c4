#include "kernels/cpu/head_geometry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "kernels/cpu/matmul.h"
#include "kernels/ops/head_loss.h"

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
        EXPECT_LE(g.tile_rows, g.chunk_rows);
      }
}

/// The last chunk may be shorter than the others, and its tiles larger.
TEST(HeadGeometry, HasRoomForTheProductsOfEveryChunk) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const std::int64_t h : {64, 384, 768})
      for (const auto& [n, v] : {std::pair<std::int64_t, std::int64_t>{16384, 30592},
                                 {2064, 32000},
                                 {5000, 50304},
                                 {1024, 50304}})
        for (const int workers : {1, 2, 7}) {
          const Types inputs{TensorType(dtype, {n, h}), TensorType(dtype, {v, h}),
                             TensorType(DType::i32, {n}), TensorType(DType::f32, {2})};
          const Attributes attributes{{"vocabulary", static_cast<double>(v)}};
          const Types outputs = head_loss_operation().infer(inputs, attributes);
          const HeadGeometry g = head_geometry(inputs, outputs, attributes, workers);
          for (std::int64_t first = 0; first < n; first += g.chunk_rows) {
            const std::int64_t rows = std::min(g.chunk_rows, n - first);
            const MatmulTypes types{.a = TensorType(DType::f32, {rows, v}),
                                    .b = inputs[1],
                                    .c = TensorType(outputs[1].dtype, {rows, h})};
            EXPECT_GE(g.products.bytes, MatmulEngine::scratch_bytes(types, workers))
                << rows << " rows of " << g.chunk_rows << ", h " << h << ", v " << v;
          }
        }
}

}  // namespace
}  // namespace strata::kernels
