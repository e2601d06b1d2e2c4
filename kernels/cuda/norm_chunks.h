// How norm_backward cuts its vectors on CUDA, for its kernel and for planning. From shapes alone:
// the cut decides in which order the gradients of parameters are added.
#pragma once

#include <algorithm>

#include "kernels/device/tensor.h"

namespace strata::cuda {

struct NormChunks {
  std::int64_t vectors = 0;  ///< of one chunk, which one block works off
  std::int64_t count = 0;
  std::int64_t stride = 0;  ///< elements between partial sums: columns, rounded up to whole packs

  /// fp32 partial sums of `outputs` vectors of parameters: [count, outputs, stride].
  [[nodiscard]] std::int64_t bytes(int outputs) const { return count * outputs * stride * 4; }
};

/// Few chunks, because their sums are added after them; enough of them for every multiprocessor to
/// have several, of vectors enough that a chunk's sums are little beside what it reads.
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
