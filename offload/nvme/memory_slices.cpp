#include "offload/nvme/memory_slices.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "core/error.h"

namespace strata::offload {
namespace {

/// Returns the first slice that begins after `memory`.
auto after(const std::vector<MemorySlices::Slice>& slices, const std::byte* memory) {
  return std::upper_bound(slices.begin(), slices.end(), memory,
                          [](const std::byte* at, const MemorySlices::Slice& slice) {
                            return std::less<>()(at, slice.data());
                          });
}

}  // namespace

MemorySlices::MemorySlices(std::span<const Slice> ranges, std::int64_t slice_bytes) {
  for (Slice range : ranges)
    while (!range.empty()) {
      const std::size_t bytes = std::min(range.size(), static_cast<std::size_t>(slice_bytes));
      slices_.push_back(range.first(bytes));
      range = range.subspan(bytes);
    }
  std::sort(slices_.begin(), slices_.end(),
            [](const Slice& a, const Slice& b) { return std::less<>()(a.data(), b.data()); });
  for (std::size_t i = 1; i < slices_.size(); ++i)
    if (std::less<>()(slices_[i].data(), slices_[i - 1].data() + slices_[i - 1].size()))
      throw InvalidArgument("memory was registered twice for disk transfers: ranges overlap");
}

int MemorySlices::find(const std::byte* memory, std::int64_t bytes) const {
  const auto next = after(slices_, memory);
  if (next == slices_.begin()) return -1;
  const Slice& slice = *(next - 1);
  const std::int64_t end = memory - slice.data() + bytes;
  return end <= static_cast<std::int64_t>(slice.size())
             ? static_cast<int>(next - slices_.begin()) - 1
             : -1;
}

std::int64_t MemorySlices::until_border(const std::byte* memory) const {
  const auto next = after(slices_, memory);
  if (next != slices_.begin()) {
    const Slice& slice = *(next - 1);
    const std::int64_t inside = memory - slice.data();
    if (inside < static_cast<std::int64_t>(slice.size()))
      return static_cast<std::int64_t>(slice.size()) - inside;
  }
  return next == slices_.end() ? std::numeric_limits<std::int64_t>::max() : next->data() - memory;
}

}  // namespace strata::offload
