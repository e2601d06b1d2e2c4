// The interface of a library that may compute attention on a stream (CudaStream::use_attention).
#pragma once

#include "kernels/device/stream.h"

namespace strata::cuda {

/// The library of one device. One thread at a time may use it.
class AttentionLibrary {
 public:
  virtual ~AttentionLibrary() = default;
  /// Enqueues what kernels/ops/attention.h describes. Returns false, with nothing enqueued, if the
  /// library has no plan for these operands or needs more workspace than `call` has; then our own
  /// kernels run. Allocates host memory for a problem that it meets for the first time. Throws
  /// HostError when the library fails.
  virtual bool attention(kernels::Stream& stream, const kernels::KernelCall& call) = 0;
  virtual bool attention_backward(kernels::Stream& stream, const kernels::KernelCall& call) = 0;
};

}  // namespace strata::cuda
