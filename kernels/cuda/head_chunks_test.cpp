#include "kernels/cuda/head_chunks.h"

#include <gtest/gtest.h>

namespace strata::cuda {
namespace {

TEST(HeadChunks, ChunksCoverTheRowsAndStayWithinTheirLimit) {
  for (std::int64_t v : {3, 256, 32000, 50304, 151936})
    for (std::int64_t n : {1, 100, 2048, 4096, 4097, 8192, 32768})
      for (DType dtype : {DType::f32, DType::bf16}) {
        const HeadChunks c =
            head_chunks(kernels::TensorType(dtype, {n, 64}), kernels::TensorType(dtype, {v, 64}));
        EXPECT_GE(c.logits_stride, v);
        EXPECT_EQ(c.logits_stride * size_of(dtype) % 16, 0);
        EXPECT_LE(c.chunk_rows, 4096);
        EXPECT_TRUE(c.chunk_rows == n || c.chunk_rows >= n / c.chunks);
        EXPECT_GE(c.chunks * c.chunk_rows, n);
        EXPECT_LT((c.chunks - 1) * c.chunk_rows, n);
        const std::int64_t limit = std::int64_t{512} << 20;
        EXPECT_TRUE(c.row_losses <= limit * 11 / 10 || c.chunk_rows <= 2048);
        EXPECT_GE(c.row_losses, c.chunk_rows * c.logits_stride * size_of(dtype));
        EXPECT_EQ(c.row_losses % 64, 0);
        EXPECT_EQ(c.total_bytes, c.row_losses + n * 8);
      }
}

TEST(HeadChunks, ChunksAreEqual) {
  const kernels::TensorType w(DType::bf16, {50304, 64});
  EXPECT_EQ(head_chunks(kernels::TensorType(DType::bf16, {8192, 64}), w).chunk_rows, 4096);
  EXPECT_EQ(head_chunks(kernels::TensorType(DType::bf16, {9000, 64}), w).chunk_rows, 3072);
}

}  // namespace
}  // namespace strata::cuda
