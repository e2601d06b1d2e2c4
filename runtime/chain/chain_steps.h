// A Chain with all that its solver reads worked out once: options that may be best, in bytes and in
// ticks.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/chain/chain.h"

namespace strata::runtime {

/// One option of one block.
struct ChainMove {
  int option = 0;
  std::int64_t kept_bytes = 0;
  std::int64_t link_bytes = 0;
  std::int64_t host_bytes = 0;
  std::int64_t disk_bytes = 0;
  /// Held in the block's backward pass, without what earlier blocks keep and what comes back.
  std::int64_t backward_bytes = 0;
  std::int64_t recompute_ns = 0;
  std::int64_t back_ns = 0;        ///< until its bytes are back
  std::int64_t write_wait_ns = 0;  ///< of the next block, for the disk
};

struct ChainStep {
  std::int64_t forward_bytes = 0;
  std::int64_t backward_ns = 0;
  std::int64_t drained_bytes = 0;  ///< that can leave during the forward pass
  std::vector<ChainMove> moves;    ///< possible and undominated
};

/// Ticks: a unit of time so short that both a nanosecond and a byte over the link take a whole
/// number of them.
struct ChainSteps {
  static constexpr std::int64_t kTicksPerByte = 1024;

  explicit ChainSteps(const Chain& chain);

  std::vector<ChainStep> steps;
  std::int64_t ticks_per_ns = 1;
  std::int64_t budget_bytes = 0;
  std::int64_t host_budget_bytes = 0;
  bool host_binds = false;  ///< false: every choice has room in host memory

  [[nodiscard]] int length() const { return static_cast<int>(steps.size()); }
  [[nodiscard]] const ChainStep& step(int block) const {
    return steps[static_cast<std::size_t>(block)];
  }
  /// True if some block has no possible option.
  [[nodiscard]] bool has_gap() const;
};

}  // namespace strata::runtime
