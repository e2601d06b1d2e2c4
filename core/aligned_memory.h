// Memory for transfers and measurements, aligned as disks require.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

namespace strata {

class AlignedMemory {
 public:
  static constexpr std::int64_t kAlignment = 4096;

  /// Allocates zeros; `bytes` is rounded up to kAlignment. Asks for huge pages: a device takes a
  /// request in fewer pieces if its memory is contiguous. Throws std::bad_alloc.
  explicit AlignedMemory(std::int64_t bytes)
      : bytes_(static_cast<std::size_t>((bytes + kAlignment - 1) / kAlignment * kAlignment)) {
    const std::size_t alignment = bytes_ < kHugePage ? std::size_t{kAlignment} : kHugePage;
    // posix_memalign, since aligned_alloc requires whole multiples of the alignment.
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

}  // namespace strata
