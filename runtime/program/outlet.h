// A stretch of the disk tier that stands for whoever takes what Programs write there.
#pragma once

#include <cstdint>

namespace strata::runtime {

/// Bytes [begin, end) of the disk tier, multiples of kDiskAlignment, with no disk behind them
/// (runtime/execute/outlet_disk.h).
struct Outlet {
  std::int64_t begin = 0, end = 0;
  bool operator==(const Outlet&) const = default;
  [[nodiscard]] std::int64_t bytes() const { return end - begin; }
  /// Where the disk has what Programs see at `offset`, which lies outside.
  [[nodiscard]] std::int64_t behind(std::int64_t offset) const {
    return offset < end ? offset : offset - bytes();
  }
};

}  // namespace strata::runtime
