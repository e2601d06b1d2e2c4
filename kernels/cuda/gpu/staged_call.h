// One call of a kernel, moved from host tensors into one block of a device's memory and back, with
// a watch on every byte that the kernel may not write. Test code only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/device/stream.h"
#include "kernels/device/tensor.h"

namespace strata::cuda {

/// Operands that share host memory (in place, or parts of one matrix) share device memory too, and
/// all keep their alignment up to 16 bytes. The rows of outputs that are no input hold 0xFF before
/// the run, as does the workspace, which is exactly as large as asked; guards lie between all of
/// them.
class StagedCall {
 public:
  StagedCall(std::span<const kernels::Tensor> inputs, std::span<const kernels::Tensor> outputs,
             std::size_t workspace_bytes);

  /// What the block must hold before the run. Its base must be 256-byte aligned.
  [[nodiscard]] std::span<const std::byte> image() const { return image_; }

  /// The operands within a block at `base`.
  [[nodiscard]] std::vector<kernels::Tensor> inputs(std::byte* base) const;
  [[nodiscard]] std::vector<kernels::Tensor> outputs(std::byte* base) const;
  [[nodiscard]] std::span<std::byte> workspace(std::byte* base) const;

  /// Copies the outputs of a block after the run to the host tensors. Throws InternalError that
  /// says where the kernel wrote what it may not: an input, a gap between rows, a guard.
  void finish(std::span<const std::byte> after);

 private:
  struct Place {
    std::string name;  ///< "input 0"
    kernels::Tensor host;
    std::size_t offset = 0;  ///< in the block
    bool output = false;
  };

  void place(std::size_t workspace_bytes);
  [[nodiscard]] std::string describe(std::size_t offset) const;

  std::vector<Place> places_;  ///< inputs, then outputs
  std::size_t input_count_;
  std::size_t workspace_offset_ = 0, workspace_bytes_ = 0;
  std::vector<std::byte> image_;
  std::vector<bool> writable_;  ///< per byte of the image
};

}  // namespace strata::cuda
