#include "runtime/chain/chain_bound.h"

#include <algorithm>
#include <numeric>

namespace strata::runtime {
namespace {

constexpr std::int64_t kMostLevels = 4096;
constexpr std::int64_t kLeastLevels = 64;
/// Bounds levels times moves of the whole chain.
constexpr std::int64_t kMostWork = 20'000'000;

std::int64_t price(std::size_t index, std::size_t prices) {
  return static_cast<std::int64_t>(index) * ChainSteps::kTicksPerByte /
         static_cast<std::int64_t>(prices - 1);
}

}  // namespace

ChainBound::ChainBound(const ChainSteps& steps) {
  std::int64_t divisor = 0;
  std::int64_t most_kept = 0;
  std::int64_t moves = 0;
  for (const ChainStep& step : steps.steps) {
    std::int64_t most = 0;
    for (const ChainMove& move : step.moves) {
      divisor = std::gcd(divisor, move.kept_bytes);
      most = std::max(most, move.kept_bytes);
    }
    most_kept += most;
    moves += static_cast<std::int64_t>(step.moves.size());
  }
  most_kept = std::min(most_kept, steps.budget_bytes);
  divisor = std::max<std::int64_t>(1, divisor);
  const std::int64_t most_levels =
      std::clamp(kMostWork / std::max<std::int64_t>(1, moves), kLeastLevels, kMostLevels);
  // A multiple of the common divisor of all kept bytes: with that itself nothing is rounded.
  unit_bytes_ = divisor * (most_kept / divisor / most_levels + 1);
  levels_ = most_kept / unit_bytes_ + 1;
  remaining_ticks_.assign(index(steps.length() + 1, 0), kNever);
  std::fill(remaining_ticks_.begin() + static_cast<std::ptrdiff_t>(index(steps.length(), 0)),
            remaining_ticks_.end(), 0);
  for (int block = steps.length() - 1; block >= 0; --block) fill_block(steps, block);
}

void ChainBound::fill_block(const ChainSteps& steps, int block) {
  const ChainStep& step = steps.step(block);
  const bool is_last = block + 1 == steps.length();
  std::int64_t hidden_ns = 0;  // of what comes back, at most
  if (!is_last) {
    const ChainStep& next = steps.step(block + 1);
    for (const ChainMove& move : next.moves) hidden_ns = std::max(hidden_ns, move.recompute_ns);
    hidden_ns += next.backward_ns;
  }
  for (const ChainMove& move : step.moves) {
    const std::int64_t room =
        steps.budget_bytes - std::max(step.forward_bytes, move.backward_bytes);
    if (room < 0) continue;
    const std::int64_t shift = move.kept_bytes / unit_bytes_;
    const std::int64_t last = std::min(room / unit_bytes_, levels_ - 1 - shift);
    const std::int64_t ns = move.recompute_ns + move.write_wait_ns +
                            std::max<std::int64_t>(0, move.back_ns - hidden_ns);
    std::array<std::int64_t, kPrices> added{};
    for (std::size_t p = 0; p < kPrices; ++p) {
      const std::int64_t own = price(p, kPrices);
      added[p] = ns * steps.ticks_per_ns - own * step.drained_bytes +
                 (is_last ? ChainSteps::kTicksPerByte : own) * move.link_bytes;
    }
    for (std::int64_t level = 0; level <= last; ++level) {
      std::int64_t* here = &remaining_ticks_[index(block, level)];
      const std::int64_t* after = &remaining_ticks_[index(block + 1, level + shift)];
      for (std::size_t p = 0; p < kPrices; ++p)
        here[p] = std::min(here[p], after[p] >= kNever / 2 ? kNever : after[p] + added[p]);
    }
  }
}

std::int64_t ChainBound::ticks(int block, std::int64_t kept_bytes, std::int64_t backlog_bytes,
                               std::int64_t ticks) const {
  const std::int64_t level = kept_bytes / unit_bytes_;
  if (level >= levels_) return kNever;
  const std::int64_t* remaining = &remaining_ticks_[index(block, level)];
  std::int64_t most = ticks;
  for (std::size_t p = 0; p < kPrices; ++p) {
    if (remaining[p] >= kNever / 2) return kNever;
    most = std::max(most, ticks + price(p, kPrices) * backlog_bytes + remaining[p]);
  }
  return most;
}

}  // namespace strata::runtime
