// A CUDA stream as a kernels::Stream.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/cuda/cuda_error.h"
#include "kernels/device/stream.h"

namespace strata::cuda {

class AttentionLibrary;
class ProductLibrary;

/// Owns a non-blocking stream of the current device.
class CudaStream final : public kernels::Stream {
 public:
  CudaStream();
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  [[nodiscard]] cudaStream_t get() const { return stream_; }

  /// The library that multiplies matrices on this stream; nullptr: our own kernels do.
  [[nodiscard]] ProductLibrary* products() const { return products_; }
  /// The library that computes attention where it can; nullptr: our own kernels do.
  [[nodiscard]] AttentionLibrary* attention() const { return attention_; }
  /// Sets the libraries, which must live as long as the stream is used.
  void use_products(ProductLibrary* products) { products_ = products; }
  void use_attention(AttentionLibrary* library) { attention_ = library; }

 private:
  cudaStream_t stream_ = nullptr;
  ProductLibrary* products_ = nullptr;
  AttentionLibrary* attention_ = nullptr;
};

/// Casts `stream`, which must be a CudaStream.
inline CudaStream& cuda(kernels::Stream& stream) { return static_cast<CudaStream&>(stream); }

inline AttentionLibrary* attention_library(kernels::Stream& stream) {
  return cuda(stream).attention();
}

}  // namespace strata::cuda
