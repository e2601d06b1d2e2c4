// Host memory that a GPU reads and writes at the host's addresses.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace strata::cuda {

/// Pages of this process, locked and known to all devices of the process.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  /// Takes `bytes` > 0. Large memory is mapped in huge pages by several threads and registered:
  /// cudaHostAlloc makes small pages on one thread, which takes minutes for 100 GB. Where a device
  /// knows registered memory under other addresses, or refuses it, cudaHostAlloc makes it. Returns
  /// what CUDA said, after which the object holds nothing unless that is cudaSuccess.
  [[nodiscard]] cudaError_t take(std::int64_t bytes);
  ~PinnedMemory();

  [[nodiscard]] std::byte* base() const { return base_; }

 private:
  [[nodiscard]] bool take_registered(std::size_t bytes);

  std::byte* base_ = nullptr;
  std::size_t mapped_bytes_ = 0;  ///< 0: of cudaHostAlloc
};

}  // namespace strata::cuda
