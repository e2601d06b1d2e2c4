// A range of the disk tier whose writes go to a receiver instead of a disk.
#pragma once

#include <cstdint>

namespace strata::runtime {

/// Bytes [begin, end) of the disk tier, multiples of kDiskAlignment, with no disk behind them
/// (runtime/execute/outlet_disk.h).
struct Outlet {
  std::int64_t begin = 0, end = 0;
  bool operator==(const Outlet&) const = default;
  [[nodiscard]] std::int64_t bytes() const { return end - begin; }
  /// Returns the disk's own offset for what Programs see at `offset`, outside the outlet.
  [[nodiscard]] std::int64_t behind(std::int64_t offset) const {
    return offset < end ? offset : offset - bytes();
  }
};

}  // namespace strata::runtime
