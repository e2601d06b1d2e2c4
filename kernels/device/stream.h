// An ordered place where kernels run, and the calling convention of kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/device/attributes.h"
#include "kernels/device/tensor.h"

namespace strata::kernels {

/// Work enqueued on one stream runs in order. A CPU stream runs it inline, on the calling thread
/// and the device's pool; a CUDA stream returns at once. Not thread-safe: one queue, one stream.
class Stream {
 public:
  virtual ~Stream() = default;
};

/// What a kernel gets. Inputs and outputs are in the order of the operation's header; an absent
/// optional operand is absent from the span. `workspace` has at least the bytes that
/// kernels::workspace_bytes says, 64-byte aligned, uninitialized.
struct KernelCall {
  std::span<const Tensor> inputs;
  std::span<const Tensor> outputs;
  std::span<std::byte> workspace;
  const Attributes& attributes;
  /// Null, or in device memory: the kernel reads it when it runs, and 0 means that it completes and
  /// changes nothing, whatever its operands hold. Given to kernels of devices that the host does
  /// not wait for, and only of operations that allow it (Operation::predicated). A CPU executor
  /// looks at predicates itself and leaves this null.
  const std::uint32_t* predicate = nullptr;
};

/// Runs one operation on `stream`. Does not allocate, synchronize or decide by values on the host.
using Kernel = void (*)(Stream& stream, const KernelCall& call);

/// One backend's kernels by operation name.
class KernelTable {
 public:
  virtual ~KernelTable() = default;
  /// nullptr when this backend lacks it.
  [[nodiscard]] virtual Kernel find(std::string_view operation) const = 0;
};

}  // namespace strata::kernels
