// Memory that is allocated where memory was freed too early.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "offload/nvme/disk_alignment.h"

namespace strata::offload {

/// Make it when memory of as many bytes should still be held for a request under way: if that was
/// freed, the allocator gives the same addresses again, and the request meets these bytes.
class FreshMemory {
 public:
  explicit FreshMemory(std::int64_t bytes) {
    for (int i = 0; i < 4; ++i)
      std::ranges::fill(memories_.emplace_back(bytes).bytes(), std::byte{0xab});
  }
  [[nodiscard]] bool untouched() const {
    return std::ranges::all_of(memories_, [](const AlignedMemory& memory) {
      return std::ranges::all_of(memory.bytes(),
                                 [](std::byte value) { return value == std::byte{0xab}; });
    });
  }

 private:
  std::vector<AlignedMemory> memories_;
};

}  // namespace strata::offload
