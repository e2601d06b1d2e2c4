// Streams, on which kernels run in order, and the calling convention of kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/device/attributes.h"
#include "kernels/device/tensor.h"

namespace strata::kernels {

/// Work enqueued on one stream runs in order. A CPU stream runs it inline, on the calling thread
/// and the thread pool; with a CUDA stream calls return at once. Not thread-safe: one stream per
/// queue.
class Stream {
 public:
  virtual ~Stream() = default;
};

/// The arguments of a kernel. Inputs and outputs are in the order of the operation's header; an
/// optional operand that is not given is left out of the span. `workspace` has at least
/// kernels::workspace_bytes, is aligned to 64 bytes, and is uninitialized.
struct KernelCall {
  std::span<const Tensor> inputs;
  std::span<const Tensor> outputs;
  std::span<std::byte> workspace;
  const Attributes& attributes;
  /// Null, or the address of a word in device memory, which the kernel reads when it runs: where it
  /// is 0, the kernel changes nothing, whatever its operands hold. Only operations that allow it
  /// (Operation::predicated) get one. The CPU executor reads predicates itself and leaves this
  /// null.
  const std::uint32_t* predicate = nullptr;
};

/// Runs one operation on `stream`. It does not allocate, synchronize or decide by values on the
/// host.
using Kernel = void (*)(Stream& stream, const KernelCall& call);

/// Finds the kernels of one backend by the name of the operation.
class KernelTable {
 public:
  virtual ~KernelTable() = default;
  /// Returns nullptr when this backend has no kernel for `operation`.
  [[nodiscard]] virtual Kernel find(std::string_view operation) const = 0;
};

}  // namespace strata::kernels
