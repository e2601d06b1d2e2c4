// Host memory that a GPU reads and writes at the host's addresses.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace strata::cuda {

/// Pages of this process, locked and known to all devices of the process. Move-only.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  /// Takes `bytes` > 0. Large memory is mapped in huge pages by several threads and registered:
  /// cudaHostAlloc makes small pages on one thread, which takes minutes for 100 GB. Where a device
  /// knows registered memory under other addresses, or refuses it, cudaHostAlloc makes it. Returns
  /// what CUDA said, after which the object holds nothing unless that is cudaSuccess.
  [[nodiscard]] cudaError_t take(std::int64_t bytes);
  PinnedMemory(PinnedMemory&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)),
        mapped_bytes_(std::exchange(other.mapped_bytes_, 0)) {}
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
    return *this;
  }
  ~PinnedMemory();

  [[nodiscard]] std::byte* base() const { return base_; }

 private:
  [[nodiscard]] bool take_registered(std::size_t bytes);

  std::byte* base_ = nullptr;
  std::size_t mapped_bytes_ = 0;  ///< 0: of cudaHostAlloc
};

}  // namespace strata::cuda
