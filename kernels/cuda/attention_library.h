// Attention by a library instead of our own kernels. A stream may have one (use_attention).
#pragma once

#include "kernels/device/stream.h"

namespace strata::cuda {

/// One device's library. Used by one thread at a time.
class AttentionLibrary {
 public:
  virtual ~AttentionLibrary() = default;
  /// Enqueues what kernels/ops/attention.h describes. False, and nothing enqueued, when the library
  /// has no plan for these operands, or one that needs more workspace than `call` has: then our own
  /// kernels do it. Allocates host memory for a problem that it meets for the first time. Throws
  /// HostError when the library fails.
  virtual bool attention(kernels::Stream& stream, const kernels::KernelCall& call) = 0;
  virtual bool attention_backward(kernels::Stream& stream, const kernels::KernelCall& call) = 0;
};

}  // namespace strata::cuda
