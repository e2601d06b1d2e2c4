// The cut of norm_backward's vectors into chunks on CUDA, for its kernel and for planning. It
// depends on shapes alone, because it decides the order in which gradients of parameters are added.
#pragma once

#include <algorithm>

#include "kernels/device/tensor.h"

namespace strata::cuda {

struct NormChunks {
  std::int64_t vectors = 0;  ///< vectors in a chunk, which one block processes
  std::int64_t count = 0;
  std::int64_t stride = 0;  ///< elements between partial sums: columns, rounded up to whole packs

  /// The bytes of partial sums for `outputs` parameter vectors: fp32 [count, outputs, stride].
  [[nodiscard]] std::int64_t bytes(int outputs) const { return count * outputs * stride * 4; }
};

/// Makes at most 512 chunks, since their sums are added afterwards, but several per multiprocessor,
/// of enough vectors for a chunk's sums to be few bytes compared with what it reads.
inline NormChunks norm_chunks(const kernels::Shape& shape) {
  constexpr std::int64_t kMostChunks = 512, kFewestElements = 8 * 1024, kStep = 16;
  const std::int64_t columns = std::max<std::int64_t>(1, shape[shape.ndim() - 1]);
  const std::int64_t vectors = shape.elements() / columns;
  const auto quotient = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  const std::int64_t least = std::max(quotient(vectors, kMostChunks),
                                      std::min<std::int64_t>(64, kFewestElements / columns));
  NormChunks chunks;
  chunks.vectors = std::max(kStep, quotient(least, kStep) * kStep);
  chunks.count = quotient(vectors, chunks.vectors);
  chunks.stride = quotient(columns, 8) * 8;
  return chunks;
}

}  // namespace strata::cuda
