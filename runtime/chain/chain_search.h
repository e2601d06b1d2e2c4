// One run over a chain's blocks with labels (chain_solver.h), as wide as its effort allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/chain/chain_bound.h"
#include "runtime/chain/chain_steps.h"

namespace strata::runtime {

/// The effort that is left to spend; shared by the runs of one solution.
struct ChainWork {
  std::int64_t most = 0;
  std::int64_t spent = 0;
  [[nodiscard]] bool is_spent() const { return spent >= most; }
};

struct ChainSearchResult {
  ChainChoice choice;  ///< empty: none that is fast enough
  /// No choice that was left out is faster than this.
  std::int64_t least_left_out_ticks = ChainBound::kNever;
  bool complete = true;  ///< false: effort ended; `choice` and `least_left_out_ticks` say nothing
};

class ChainSearch {
 public:
  ChainSearch(const ChainSteps& steps, const ChainBound& bound);

  /// Looks for the fastest choice of at most `most_ticks`. Goes on with at most `width` labels of
  /// each block, those of the least lower bound.
  ChainSearchResult run(std::int64_t most_ticks, std::size_t width, ChainWork& work) const;

 private:
  struct Label {
    std::int64_t kept = 0;
    std::int64_t coming = 0;  ///< kept, with what comes back beside the next block
    std::int64_t ticks = 0;
    std::int64_t busy = 0;         ///< ticks until the link has nothing to do, at least
    std::int64_t ticks_ready = 0;  ///< ticks and ready, added up
    std::int64_t busy_ready = 0;
    std::int64_t host = 0;
    std::int64_t host_window = 0;
    std::int64_t bound = 0;
    int parent = 0;
    int move = 0;

    [[nodiscard]] bool dominates(const Label& other) const {
      return kept <= other.kept && ticks <= other.ticks && busy <= other.busy &&
             coming <= other.coming && ticks_ready <= other.ticks_ready &&
             busy_ready <= other.busy_ready && host <= other.host &&
             host_window <= other.host_window;
    }
  };
  struct Ancestor {
    int parent;
    int move;
  };

  void add_moves(int block, Label label, int parent, std::int64_t most_ticks,
                 std::vector<Label>& next) const;
  static bool cull(std::vector<Label>& labels, ChainWork& work);
  [[nodiscard]] ChainChoice choice_of(const std::vector<std::vector<Ancestor>>& ancestors,
                                      const Label& last) const;

  const ChainSteps& steps_;
  const ChainBound& bound_;
  std::vector<std::vector<std::int64_t>> kept_limits_;
};

}  // namespace strata::runtime
