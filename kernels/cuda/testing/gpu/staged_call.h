// A call of a kernel whose operands are moved from host tensors into one block of device memory and
// back. Every byte that the kernel must not write is checked. For tests only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/device/stream.h"
#include "kernels/device/tensor.h"

namespace strata::cuda {

/// Operands that share host memory (in place, or parts of one matrix) share device memory, too, and
/// all keep their alignment up to 16 bytes. Before the run the workspace, which is exactly as large
/// as asked, and rows of outputs that are not inputs hold 0xFF. There are guard bytes around all
/// regions.
class StagedCall {
 public:
  StagedCall(std::span<const kernels::Tensor> inputs, std::span<const kernels::Tensor> outputs,
             std::size_t workspace_bytes);

  /// The content that the block must have before the run. Its base must be 256-byte aligned.
  [[nodiscard]] std::span<const std::byte> image() const { return image_; }

  /// The operands within a block at `base`.
  [[nodiscard]] std::vector<kernels::Tensor> inputs(std::byte* base) const;
  [[nodiscard]] std::vector<kernels::Tensor> outputs(std::byte* base) const;
  [[nodiscard]] std::span<std::byte> workspace(std::byte* base) const;

  /// Copies the outputs of a block after the run to the host tensors. Throws InternalError, which
  /// names the place, if the kernel wrote to an input, a gap between rows, or a guard.
  void finish(std::span<const std::byte> after);

 private:
  struct Place {
    std::string name;  ///< "input 0"
    kernels::Tensor host;
    std::size_t offset = 0;  ///< bytes from the start of the block
    bool output = false;
  };

  void place(std::size_t workspace_bytes);
  [[nodiscard]] std::string describe(std::size_t offset) const;

  std::vector<Place> places_;  ///< inputs, then outputs
  std::size_t input_count_;
  std::size_t workspace_offset_ = 0, workspace_bytes_ = 0;
  std::vector<std::byte> image_;
  std::vector<bool> writable_;  ///< one per byte of the image
};

}  // namespace strata::cuda
