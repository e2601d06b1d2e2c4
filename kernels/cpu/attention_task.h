// The operands of one task of attention, as plain pointers: they belong to one sample and key head.
#pragma once

#include <cstdint>

#include "kernels/device/stream.h"
#include "kernels/device/tensor.h"
#include "kernels/math/philox.h"
#include "kernels/ops/attention.h"

namespace strata::kernels {

constexpr std::int64_t kAttentionQueries = 64;  ///< queries per tile
constexpr std::int64_t kAttentionKeys = 64;     ///< keys per tile

/// Return the number of fp32 elements of scratch per worker.
std::int64_t attention_scratch_floats(std::int64_t sequence, std::int64_t head_size);
std::int64_t attention_backward_scratch_floats(std::int64_t sequence, std::int64_t head_size);

/// One head of one sample: row t of [T, D] is at data + t * stride_bytes.
struct HeadRows {
  std::byte* data = nullptr;
  std::int64_t stride_bytes = 0;
  DType type = DType::f32;

  HeadRows() = default;
  HeadRows(const Tensor& tensor, std::int64_t first_row, std::int64_t head)
      : stride_bytes(tensor.row_stride() * size_of(tensor.dtype())), type(tensor.dtype()) {
    data = tensor.data + first_row * stride_bytes + head * tensor.type.shape[2] * size_of(type);
  }
  [[nodiscard]] std::byte* row(std::int64_t t) const { return data + t * stride_bytes; }
};

struct AttentionShape {
  std::int64_t sequence, head_size;
  std::int64_t padded;  ///< head size rounded up to 32, the width of tiles in scratch
  float scale;
  bool drops;
  std::uint32_t threshold;
  float keep_scale;
  std::uint32_t row_blocks;  ///< random blocks per query: round_up(T, 4) / 4
};

struct AttentionForwardTask {
  HeadRows q, k, v, o;
  float* lse;
  std::int64_t first_query, last_query;  ///< first is a multiple of the tile
  RandomSource random;
  std::uint64_t first_block;  ///< random block of (head, query 0, key 0)
};

/// One query head of a group.
struct AttentionBackwardHead {
  HeadRows q, o, dout, dq;
  const float* lse;
  std::uint64_t first_block;
};

/// One key head with all its query heads, in order.
struct AttentionBackwardTask {
  HeadRows k, v, dk, dv;
  RandomSource random;
};

/// Reads the attributes of attention and attention_backward.
AttentionShape attention_shape(const Attributes& attributes, std::int64_t head_size);

/// Returns the random source of one sample's dropout (a dummy if nothing is dropped).
RandomSource attention_random(const KernelCall& call, const AttentionShape& shape,
                              std::int64_t sample);

}  // namespace strata::kernels
