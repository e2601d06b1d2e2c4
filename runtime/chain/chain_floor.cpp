#include "runtime/chain/chain_floor.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/chain/chain_cost.h"

namespace strata::runtime {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

/// A way through the blocks so far, without time.
struct Way {
  std::int64_t kept = 0;
  std::int64_t kept_and_coming = 0;  ///< with what comes back beside the next block
  std::int64_t host = 0;
  std::int64_t host_and_window = 0;  ///< with the last block's bytes on their way to the disk
  int parent = 0;
  int option = 0;

  [[nodiscard]] bool needs_at_most(const Way& other) const {
    return kept <= other.kept && kept_and_coming <= other.kept_and_coming && host <= other.host &&
           host_and_window <= other.host_and_window;
  }
};

void keep_undominated(std::vector<Way>& ways) {
  std::sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) {
    return std::tie(a.kept, a.kept_and_coming, a.host, a.host_and_window, a.parent, a.option) <
           std::tie(b.kept, b.kept_and_coming, b.host, b.host_and_window, b.parent, b.option);
  });
  std::vector<Way> remaining;
  for (const Way& way : ways)
    if (std::none_of(remaining.begin(), remaining.end(),
                     [&](const Way& other) { return other.needs_at_most(way); }))
      remaining.push_back(way);
  ways = std::move(remaining);
}

/// Moves of a block that need least, without time.
std::vector<ChainMove> frugal_moves(const std::vector<ChainMove>& moves) {
  const auto needs_at_most = [](const ChainMove& a, const ChainMove& b) {
    return a.kept_bytes <= b.kept_bytes && a.host_bytes <= b.host_bytes &&
           a.disk_bytes <= b.disk_bytes && a.backward_bytes <= b.backward_bytes;
  };
  std::vector<ChainMove> remaining;
  for (const ChainMove& move : moves) {
    if (std::any_of(remaining.begin(), remaining.end(),
                    [&](const ChainMove& other) { return needs_at_most(other, move); }))
      continue;
    std::erase_if(remaining, [&](const ChainMove& other) { return needs_at_most(move, other); });
    remaining.push_back(move);
  }
  return remaining;
}

/// All ways that fit, block by block; the last list is empty if none does.
std::vector<std::vector<Way>> ways_within(const ChainSteps& steps, std::int64_t budget) {
  std::vector<std::vector<Way>> levels{{Way{}}};
  for (const ChainStep& step : steps.steps) {
    std::vector<Way> next;
    for (std::size_t parent = 0; parent < levels.back().size(); ++parent) {
      const Way& way = levels.back()[parent];
      if (step.forward_bytes + way.kept > budget) continue;
      for (const ChainMove& move : step.moves) {
        const std::int64_t kept = way.kept + move.kept_bytes;
        const std::int64_t host = way.host + move.host_bytes;
        if (move.backward_bytes + way.kept_and_coming > budget ||
            way.host_and_window + move.host_bytes + move.disk_bytes > steps.host_budget_bytes)
          continue;
        if (steps.host_binds)
          next.push_back({kept, kept + move.link_bytes, host, host + move.disk_bytes,
                          static_cast<int>(parent), move.option});
        else
          next.push_back(
              {kept, kept + move.link_bytes, 0, 0, static_cast<int>(parent), move.option});
      }
    }
    keep_undominated(next);
    levels.push_back(std::move(next));
    if (levels.back().empty()) break;
  }
  return levels;
}

ChainChoice choice_of(const std::vector<std::vector<Way>>& levels) {
  ChainChoice choice(levels.size() - 1);
  int at = 0;
  for (std::size_t level = levels.size() - 1; level > 0; --level) {
    const Way& way = levels[level][static_cast<std::size_t>(at)];
    choice[level - 1] = way.option;
    at = way.parent;
  }
  return choice;
}

}  // namespace

std::optional<ChainFloor> chain_floor(const Chain& chain) {
  ChainSteps steps(chain);
  if (steps.has_gap()) return std::nullopt;
  for (ChainStep& step : steps.steps) step.moves = frugal_moves(step.moves);

  std::optional<ChainFloor> found;
  std::int64_t too_little = -1;
  std::int64_t budget = kNoLimit;
  while (!found || found->budget_bytes - too_little > 1) {
    if (found) budget = too_little + (found->budget_bytes - too_little) / 2;
    const auto levels = ways_within(steps, budget);
    if (!levels.back().empty()) {
      ChainChoice choice = choice_of(levels);
      const std::int64_t needed = chain_cost(chain, choice).floor_bytes;
      found = {needed, std::move(choice)};
    } else if (found) {
      too_little = budget;
    } else {
      return std::nullopt;
    }
  }
  return found;
}

std::vector<std::vector<std::int64_t>> kept_limits(const ChainSteps& steps) {
  const int length = steps.length();
  std::vector<std::vector<std::int64_t>> limits(static_cast<std::size_t>(length) + 1);
  limits.back().assign(steps.steps.back().moves.size(), kNoLimit);
  for (int i = length - 1; i >= 0; --i) {
    const ChainStep& step = steps.step(i);
    const auto& after = limits[static_cast<std::size_t>(i) + 1];
    auto& here = limits[static_cast<std::size_t>(i)];
    const std::vector<ChainMove> first(1);
    for (const ChainMove& before : i > 0 ? steps.step(i - 1).moves : first) {
      std::int64_t most = -1;
      for (std::size_t k = 0; k < step.moves.size(); ++k) {
        const ChainMove& move = step.moves[k];
        most = std::max(most,
                        std::min({steps.budget_bytes - step.forward_bytes,
                                  steps.budget_bytes - move.backward_bytes - before.link_bytes,
                                  after[k] == kNoLimit ? kNoLimit : after[k] - move.kept_bytes}));
      }
      here.push_back(most);
    }
  }
  return limits;
}

}  // namespace strata::runtime
