// Memory of the store's own for transfers: aligned as the disk wants it.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

#include "runtime/disk.h"

namespace strata::offload {

constexpr std::int64_t round_down(std::int64_t bytes) {
  return bytes / runtime::kDiskAlignment * runtime::kDiskAlignment;
}
constexpr std::int64_t round_up(std::int64_t bytes) {
  return round_down(bytes + runtime::kDiskAlignment - 1);
}

class AlignedMemory {
 public:
  /// Zeros; `bytes` is rounded up to runtime::kDiskAlignment. On huge pages where that is allowed:
  /// a device takes a request in fewer pieces when its memory is contiguous.
  explicit AlignedMemory(std::int64_t bytes) : bytes_(static_cast<std::size_t>(round_up(bytes))) {
    const std::size_t alignment =
        bytes_ < kHugePage ? std::size_t{runtime::kDiskAlignment} : kHugePage;
    // aligned_alloc wants whole multiples of the alignment.
    void* memory = nullptr;
    if (::posix_memalign(&memory, alignment, bytes_) != 0) throw std::bad_alloc();
    memory_.reset(static_cast<std::byte*>(memory));
    if (alignment == kHugePage) ::madvise(memory_.get(), bytes_, MADV_HUGEPAGE);
    std::fill_n(memory_.get(), bytes_, std::byte{0});
  }
  [[nodiscard]] std::span<std::byte> bytes() const { return {memory_.get(), bytes_}; }

 private:
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace strata::offload
