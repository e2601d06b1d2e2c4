// The interface for trials of an algorithm: its operands and its outcome.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <span>

#include "kernels/cuda/library_product.h"

namespace strata::cuda {

/// Addresses of the operands of a LibraryProduct.
struct ProductOperands {
  const std::byte* first = nullptr;
  const std::byte* second = nullptr;
  std::byte* result = nullptr;
  const std::byte* bias = nullptr;      ///< null if the product has none
  std::span<std::byte> workspace = {};  ///< aligned to kLibraryAlignment
};

struct TrialOutcome {
  bool ran = false;        ///< the library accepted the algorithm
  bool same_bits = false;  ///< every run gave the same bits
  double microseconds = 0;
};

/// Runs products on operands of its own.
class ProductTrials {
 public:
  /// Enqueues one product. Returns false when the library refuses it.
  using Enqueue = std::function<bool(cudaStream_t stream, const ProductOperands& operands)>;

  virtual ~ProductTrials() = default;
  /// Makes random operands for `product` and frees those of the last one. Throws OutOfMemory.
  virtual void prepare(const LibraryProduct& product) = 0;
  /// Runs one algorithm on the operands that were prepared last.
  virtual TrialOutcome run(const Enqueue& enqueue) = 0;
};

}  // namespace strata::cuda
