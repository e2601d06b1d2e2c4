// Memory registered for transfers, cut into slices that the system call accepts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace strata::offload {

class MemorySlices {
 public:
  using Slice = std::span<std::byte>;
  /// The kernel's limit for one registered buffer.
  static constexpr std::int64_t kLargestSlice = std::int64_t{1} << 30;

  MemorySlices() = default;
  /// Cuts `ranges`. Throws InvalidArgument if they overlap; skips empty ones.
  explicit MemorySlices(std::span<const Slice> ranges, std::int64_t slice_bytes = kLargestSlice);

  [[nodiscard]] const std::vector<Slice>& slices() const { return slices_; }
  /// Returns the index of the slice that holds all of [memory, memory + bytes); -1: none.
  [[nodiscard]] int find(const std::byte* memory, std::int64_t bytes) const;
  /// Returns the bytes from `memory` to the next address where a slice begins or ends.
  [[nodiscard]] std::int64_t until_border(const std::byte* memory) const;

 private:
  std::vector<Slice> slices_;  // sorted by address
};

}  // namespace strata::offload
