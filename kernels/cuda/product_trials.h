// Trying an algorithm: on what, and what comes of it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <span>

#include "kernels/cuda/library_product.h"

namespace strata::cuda {

/// Addresses of a LibraryProduct.
struct ProductOperands {
  const std::byte* first = nullptr;
  const std::byte* second = nullptr;
  std::byte* result = nullptr;
  const std::byte* bias = nullptr;      ///< where the product has one
  std::span<std::byte> workspace = {};  ///< aligned as libraries want it
};

struct TrialOutcome {
  bool ran = false;        ///< the library took it
  bool same_bits = false;  ///< every run gave the same bits
  double microseconds = 0;
};

/// A place where products run on data of its own.
class ProductTrials {
 public:
  /// Enqueues one product; false when the library refuses.
  using Enqueue = std::function<bool(cudaStream_t stream, const ProductOperands& operands)>;

  virtual ~ProductTrials() = default;
  /// Random operands for `product`; those of an earlier one go. Throws OutOfMemory.
  virtual void prepare(const LibraryProduct& product) = 0;
  /// Runs one algorithm on what was prepared last.
  virtual TrialOutcome run(const Enqueue& enqueue) = 0;
};

}  // namespace strata::cuda
