#include "kernels/cuda/cudnn_scratch.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/ops/attention.h"

namespace strata::cuda {
namespace {

using kernels::Attributes;
using kernels::DeviceCapabilities;
using kernels::TensorType;
using kernels::Types;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

AttentionProblem backward(std::int64_t batch, std::int64_t sequence, std::int64_t heads,
                          std::int64_t kv_heads, std::int64_t head_size) {
  return {.backward = true,
          .batch = batch,
          .sequence = sequence,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_size = head_size};
}

TEST(CudnnScratch, SharesABatchUntilEachPartIsModerate) {
  EXPECT_EQ(cudnn_samples(backward(8, 1024, 16, 16, 64), 90), 8);
  EXPECT_EQ(cudnn_samples(backward(32, 1024, 16, 16, 64), 90), 8);    // 16 would need 513 MiB
  EXPECT_EQ(cudnn_samples(backward(7, 4096, 28, 4, 128), 90), 1);     // nothing divides 7
  EXPECT_EQ(cudnn_samples(backward(1, 32768, 32, 8, 128), 90), 0);    // 64 GiB
  EXPECT_EQ(cudnn_samples(backward(32, 1024, 16, 16, 64), 100), 32);  // stores no dP
  AttentionProblem forward = backward(32, 4096, 32, 8, 128);
  forward.backward = false;
  EXPECT_EQ(cudnn_samples(forward, 90), 32);
}

TEST(CudnnScratch, CountsProbabilitiesOfWholeTiles) {
  const std::int64_t bytes = cudnn_scratch_bytes(backward(8, 1000, 16, 16, 64), 8, 90);
  EXPECT_GE(bytes, 8 * 16 * 2 * kMiB);
  EXPECT_LE(bytes, 8 * 16 * 2 * kMiB + kMiB);
  EXPECT_GE(cudnn_scratch_bytes(backward(8, 1000, 16, 16, 64), 8, 0), bytes);
}

class Planned : public testing::Test {
 protected:
  Planned() { device_.backend = DeviceCapabilities::Backend::cuda; }

  [[nodiscard]] std::int64_t bytes(DType dtype, double p) const {
    const TensorType q(dtype, {8 * 1024, 16, 64}), lse(DType::f32, {8, 16, 1024});
    Attributes attributes{{"sequence", 1024}, {"scale", 0.125}};
    if (p > 0) attributes.set("p", p);
    return workspace_bytes(kernels::find_operation("attention_backward"), Types{q, q, q, q, q, lse},
                           Types{q, q, q}, attributes, device_);
  }
  DeviceCapabilities device_;
  static constexpr std::int64_t kDelta = 8 * 16 * 1024 * 4;  // scratch of our own kernels
};

TEST_F(Planned, CarriesTheScratchOfALibraryThatIsThere) {
  EXPECT_EQ(bytes(DType::bf16, 0), kDelta);
  device_.cudnn = true;
  device_.architecture = 90;
  EXPECT_GE(bytes(DType::bf16, 0), 256 * kMiB);
  EXPECT_LE(bytes(DType::bf16, 0), 258 * kMiB);
}

TEST_F(Planned, CarriesNoneWhereTheLibraryIsNotAsked) {
  device_.cudnn = true;
  EXPECT_EQ(bytes(DType::f32, 0), kDelta);
  EXPECT_EQ(bytes(DType::bf16, 0.1), kDelta);
}

TEST(NoLibraryAttention, SaysWhy) {
  const Attributes attributes{{"sequence", 8}, {"scale", 1}};
  const auto why = [&](const TensorType& q, const TensorType& k, const TensorType& lse) {
    return no_library_attention(false, Types{q, k, k}, Types{q, lse}, attributes);
  };
  const TensorType q(DType::bf16, {16, 2, 64}), lse(DType::f32, {2, 2, 8});
  EXPECT_EQ(why(q, q, lse), "");
  EXPECT_EQ(why(q, TensorType(DType::bf16, {16, 2, 64}, 192), lse), "");
  EXPECT_EQ(why(q, TensorType(DType::bf16, {16, 2, 64}, 129), lse),
            "rows that are not whole packs of 16 bytes");
  EXPECT_EQ(why(q, TensorType(DType::f16, {16, 2, 64}), lse), "operands of several types");
  EXPECT_EQ(why(q, q, TensorType(DType::f32, {2, 2, 8}, 17)), "a log-sum-exp with gaps");
  EXPECT_EQ(why(TensorType(DType::f32, {16, 2, 64}), q, lse), "elements that have not 16 bits");
}

TEST(SampleOf, CountsRowsOfTheOperand) {
  std::vector<std::byte> memory(32768);
  std::byte* const data = memory.data();
  const kernels::Tensor q{TensorType(DType::bf16, {24, 2, 64}, 384), data};
  EXPECT_EQ(sample_of(q, 3, 2) - data, 2 * 8 * 384 * 2);
  const kernels::Tensor lse{TensorType(DType::f32, {3, 2, 8}), data};
  EXPECT_EQ(sample_of(lse, 3, 2) - data, 2 * 16 * 4);
}

}  // namespace
}  // namespace strata::cuda
