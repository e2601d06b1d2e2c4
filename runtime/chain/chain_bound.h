// A lower bound on the time of every choice that begins in a given way.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/chain/chain_steps.h"

namespace strata::runtime {

/// Puts a price of `p` ticks on each byte of backlog, 0 <= p <= kTicksPerByte, instead of waiting
/// for it: a byte that leaves during a forward pass earns its price back, as if the link were never
/// idle. What remains is a problem of kept bytes alone, which a table per price solves at every
/// block for every multiple of a unit of kept bytes, rounded down. What comes back beside a block
/// is left out, and a block waits for it as if the next one recomputed all that it can.
class ChainBound {
 public:
  /// Stands for "does not fit"; far below what overflows when a few are added.
  static constexpr std::int64_t kNever = std::int64_t{1} << 61;

  explicit ChainBound(const ChainSteps& steps);

  /// Ticks of the whole chain, at least, where blocks before `block` took `ticks`, keep
  /// `kept_bytes` and left `backlog_bytes` on the link.
  [[nodiscard]] std::int64_t ticks(int block, std::int64_t kept_bytes, std::int64_t backlog_bytes,
                                   std::int64_t ticks) const;

 private:
  static constexpr std::size_t kPrices = 9;  ///< evenly from 0 to kTicksPerByte

  [[nodiscard]] std::size_t index(int block, std::int64_t level) const {
    return (static_cast<std::size_t>(block) * static_cast<std::size_t>(levels_) +
            static_cast<std::size_t>(level)) *
           kPrices;
  }
  void fill_block(const ChainSteps& steps, int block);

  std::int64_t unit_bytes_ = 1;
  std::int64_t levels_ = 1;
  std::vector<std::int64_t> remaining_ticks_;  ///< by block, level and price
};

}  // namespace strata::runtime
