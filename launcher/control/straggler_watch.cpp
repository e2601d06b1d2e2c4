#include "launcher/control/straggler_watch.h"

#include <algorithm>

namespace strata::launcher {

std::optional<Straggler> StragglerWatch::look(TimePoint now, std::span<const RankState> ranks) {
  std::vector<Worked> worked;
  for (const RankState& rank : ranks) worked.push_back({rank.work_ns, rank.worked_steps});
  const auto begin_anew = [&] {
    since_ = now;
    then_ = worked;
  };
  if (!since_ || then_.size() != worked.size()) {
    begin_anew();
    return {};
  }
  if (now < *since_ + kTime) return {};
  std::vector<double> seconds;
  std::vector<int> numbers;
  std::int64_t steps = 0;
  for (std::size_t i = 0; i < worked.size(); ++i) {
    if (worked[i].steps == 0) continue;  // its device does not tell
    steps = worked[i].steps - then_[i].steps;
    if (steps < kSteps) return {};
    numbers.push_back(ranks[i].rank);
    seconds.push_back(1e-9 * static_cast<double>(worked[i].ns - then_[i].ns) /
                      static_cast<double>(steps));
  }
  begin_anew();
  if (seconds.size() < 2) return {};
  std::vector<double> sorted = seconds;
  std::ranges::sort(sorted);
  const double usual = sorted[(sorted.size() - 1) / 2];
  std::optional<Straggler> slowest;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const int rank = numbers[i];
    if (seconds[i] <= std::max(kRatio * usual, usual + kLeast)) {
      slow_.erase(rank);
    } else if (slow_.insert(rank).second && (!slowest || seconds[i] > slowest->seconds)) {
      slowest = Straggler{rank, seconds[i], usual, steps};
    }
  }
  return slowest;
}

}  // namespace strata::launcher
