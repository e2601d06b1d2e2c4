#include "runtime/chain/chain_greedy.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "runtime/chain/chain_cost.h"
#include "runtime/chain/chain_options.h"

namespace strata::runtime {
namespace {

/// The options of each class that may be chosen.
std::vector<std::vector<int>> candidates(const Chain& chain) {
  std::vector<std::vector<int>> lists;
  for (const auto& options : chain.classes) {
    auto& list = lists.emplace_back(undominated_options(options));
    std::erase_if(list, [&](int index) {
      return !chain.is_possible(options[static_cast<std::size_t>(index)]);
    });
  }
  return lists;
}

ChainChoice fastest(const Chain& chain, const std::vector<std::vector<int>>& lists) {
  ChainChoice choice;
  for (int i = 0; i < chain.length(); ++i) {
    const auto& options = chain.options(i);
    const auto& list =
        lists[static_cast<std::size_t>(chain.blocks[static_cast<std::size_t>(i)].class_index)];
    if (list.empty()) return {};
    choice.push_back(*std::min_element(list.begin(), list.end(), [&](int a, int b) {
      const ChainOption& left = options[static_cast<std::size_t>(a)];
      const ChainOption& right = options[static_cast<std::size_t>(b)];
      return std::pair(left.recompute_ns, left.link_bytes()) <
             std::pair(right.recompute_ns, right.link_bytes());
    }));
  }
  return choice;
}

/// A change of one block's option.
struct Change {
  std::size_t block = 0;
  int option = 0;
  std::int64_t freed_bytes = 0;
  std::int64_t added_ns = 0;

  [[nodiscard]] bool is_better_than(const Change& other) const {
    if (other.freed_bytes == 0) return freed_bytes > 0;
    const std::int64_t mine = std::max<std::int64_t>(1, added_ns);
    const std::int64_t others = std::max<std::int64_t>(1, other.added_ns);
    // Compares quotients in 1/1024: products of bytes and ns would overflow.
    return freed_bytes * 1024 / mine > other.freed_bytes * 1024 / others;
  }
};

/// The best change of `choice`, which needs too much; frees no bytes if there is none.
Change best_change(const Chain& chain, const std::vector<std::vector<int>>& lists,
                   const ChainChoice& choice, const ChainCost& cost) {
  Change best;
  std::set<std::pair<int, int>> seen;
  ChainChoice changed = choice;
  for (std::size_t i = 0; i < choice.size(); ++i) {
    const int class_index = chain.blocks[i].class_index;
    if (!seen.insert({class_index, choice[i]}).second) continue;
    for (const int option : lists[static_cast<std::size_t>(class_index)]) {
      changed[i] = option;
      const ChainCost next = chain_cost(chain, changed);
      const std::int64_t least = std::max(next.floor_bytes, chain.budget_bytes);
      const Change change{i, option, cost.floor_bytes - least, next.extra_ns - cost.extra_ns};
      if (next.host_peak_bytes <= chain.host_budget_bytes && change.is_better_than(best))
        best = change;
    }
    changed[i] = choice[i];
  }
  return best;
}

}  // namespace

std::optional<ChainChoice> greedy_choice(const Chain& chain) {
  const auto lists = candidates(chain);
  ChainChoice choice = fastest(chain, lists);
  if (choice.empty()) return std::nullopt;
  ChainCost cost = chain_cost(chain, choice);
  while (!cost.fits) {
    const Change change = best_change(chain, lists, choice, cost);
    if (change.freed_bytes <= 0) return std::nullopt;
    choice[change.block] = change.option;
    cost = chain_cost(chain, choice);
  }
  return choice;
}

}  // namespace strata::runtime
