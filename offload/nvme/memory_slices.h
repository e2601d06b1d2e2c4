// Memory that is registered for transfers, cut into the slices that a system call takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace strata::offload {

class MemorySlices {
 public:
  using Slice = std::span<std::byte>;
  /// The kernel registers at most this much as one buffer.
  static constexpr std::int64_t kLargestSlice = std::int64_t{1} << 30;

  MemorySlices() = default;
  /// `ranges` do not overlap (InvalidArgument); empty ones are left out.
  explicit MemorySlices(std::span<const Slice> ranges, std::int64_t slice_bytes = kLargestSlice);

  [[nodiscard]] const std::vector<Slice>& slices() const { return slices_; }
  /// The slice that holds all of [memory, memory + bytes), -1 when none does.
  [[nodiscard]] int find(const std::byte* memory, std::int64_t bytes) const;
  /// Bytes from `memory` to the next place where a slice begins or ends.
  [[nodiscard]] std::int64_t until_border(const std::byte* memory) const;

 private:
  std::vector<Slice> slices_;  // by address
};

}  // namespace strata::offload
