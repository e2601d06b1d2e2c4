#include "runtime/schedule_layout.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

namespace strata::runtime {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

/// Lifetimes with a place, found by time: a tree over all lifetimes by begin, whose nodes know the
/// latest end of the placed ones below.
class PlacedTree {
 public:
  explicit PlacedTree(const std::vector<Lifetime>& lifetimes)
      : lifetimes_(lifetimes), by_begin_(lifetimes.size()), rank_(lifetimes.size()) {
    std::iota(by_begin_.begin(), by_begin_.end(), 0);
    std::stable_sort(by_begin_.begin(), by_begin_.end(),
                     [&](int a, int b) { return lifetimes[a].begin_ns < lifetimes[b].begin_ns; });
    for (std::size_t i = 0; i < by_begin_.size(); ++i) rank_[by_begin_[i]] = static_cast<int>(i);
    while (leaves_ < by_begin_.size()) leaves_ *= 2;
    latest_end_.assign(2 * leaves_, kNever);
  }

  void clear() { std::fill(latest_end_.begin(), latest_end_.end(), kNever); }

  void add(int lifetime) {
    std::size_t node = leaves_ + static_cast<std::size_t>(rank_[lifetime]);
    for (; node >= 1; node /= 2)
      latest_end_[node] = std::max(latest_end_[node], lifetimes_[lifetime].end_ns);
  }

  /// Appends the placed lifetimes that are held at the same time as `lifetime`.
  void overlapping(int lifetime, std::vector<int>& found) const {
    const Lifetime& wanted = lifetimes_[lifetime];
    visit(1, 0, leaves_, wanted.begin_ns, wanted.end_ns, found);
  }

 private:
  void visit(std::size_t node, std::size_t from, std::size_t to, std::int64_t begin,
             std::int64_t end, std::vector<int>& found) const {
    if (latest_end_[node] <= begin || from >= by_begin_.size()) return;
    if (lifetimes_[by_begin_[from]].begin_ns >= end) return;
    if (to - from == 1) {
      found.push_back(by_begin_[from]);
      return;
    }
    const std::size_t middle = (from + to) / 2;
    visit(2 * node, from, middle, begin, end, found);
    visit(2 * node + 1, middle, to, begin, end, found);
  }

  const std::vector<Lifetime>& lifetimes_;
  std::vector<int> by_begin_, rank_;
  std::size_t leaves_ = 1;
  std::vector<std::int64_t> latest_end_;
};

/// Which hole a buffer takes.
enum class Fit : std::uint8_t { tightest, lowest };

/// Lifetimes with a larger rank are placed first.
using Rank = double (*)(const Lifetime&);

double duration(const Lifetime& l) { return static_cast<double>(l.end_ns - l.begin_ns); }

constexpr Rank kRanks[] = {
    [](const Lifetime& l) { return static_cast<double>(l.bytes) * duration(l); },
    [](const Lifetime& l) { return duration(l); },
    [](const Lifetime& l) { return static_cast<double>(l.bytes); },
    [](const Lifetime& l) { return -static_cast<double>(l.begin_ns); },
};

/// Neighbours looked at before no further order is tried: what bounds the time of large problems.
constexpr std::int64_t kEffort = 4'000'000;
constexpr int kAttemptsPerOrder = 4;

class Placer {
 public:
  Placer(std::vector<Lifetime>& lifetimes, std::int64_t alignment)
      : lifetimes_(lifetimes), alignment_(alignment), tree_(lifetimes) {}

  std::int64_t run(std::int64_t enough) {
    const std::int64_t bound = std::max(enough, largest_held(lifetimes_, alignment_));
    std::int64_t least = -1;
    std::vector<std::int64_t> best;
    for (const Rank rank : kRanks) {
      for (const Fit fit : {Fit::tightest, Fit::lowest}) {
        std::vector<int> order = sorted_by(rank);
        for (int attempt = 0; attempt < kAttemptsPerOrder; ++attempt) {
          if (least >= 0 && (least <= bound || looked_at_ > kEffort)) break;
          const std::int64_t size = place_in_order(order, fit);
          if (least < 0 || size < least) {
            least = size;
            best.clear();
            for (const Lifetime& l : lifetimes_) best.push_back(l.offset_bytes);
          }
          promote_highest(order, size);
        }
      }
    }
    for (std::size_t i = 0; i < best.size(); ++i) lifetimes_[i].offset_bytes = best[i];
    return least;
  }

 private:
  std::vector<int> sorted_by(Rank rank) const {
    std::vector<int> order;
    for (std::size_t i = 0; i < lifetimes_.size(); ++i)
      if (!lifetimes_[i].is_placed) order.push_back(static_cast<int>(i));
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return rank(lifetimes_[a]) > rank(lifetimes_[b]); });
    return order;
  }

  std::int64_t place_in_order(const std::vector<int>& order, Fit fit) {
    tree_.clear();
    std::int64_t top = 0;
    for (std::size_t i = 0; i < lifetimes_.size(); ++i) {
      if (!lifetimes_[i].is_placed) continue;
      top = std::max(top, lifetimes_[i].offset_bytes + aligned(lifetimes_[i].bytes, alignment_));
      tree_.add(static_cast<int>(i));
    }
    for (int i : order) {
      const std::int64_t bytes = aligned(lifetimes_[i].bytes, alignment_);
      lifetimes_[i].offset_bytes = find_hole(i, bytes, fit);
      top = std::max(top, lifetimes_[i].offset_bytes + bytes);
      tree_.add(i);
    }
    return top;
  }

  std::int64_t find_hole(int lifetime, std::int64_t bytes, Fit fit) {
    neighbours_.clear();
    tree_.overlapping(lifetime, neighbours_);
    looked_at_ += static_cast<std::int64_t>(neighbours_.size()) + 1;
    taken_.clear();
    for (int other : neighbours_) {
      const std::int64_t begin = lifetimes_[other].offset_bytes;
      taken_.emplace_back(begin, begin + aligned(lifetimes_[other].bytes, alignment_));
    }
    std::sort(taken_.begin(), taken_.end());
    std::int64_t end = 0, best = -1, best_hole = 0;
    for (const auto& [other_begin, other_end] : taken_) {
      const std::int64_t hole = other_begin - end;
      if (hole >= bytes && (best < 0 || hole < best_hole)) {
        best = end;
        best_hole = hole;
        if (fit == Fit::lowest || hole == bytes) break;
      }
      end = std::max(end, other_end);
    }
    return best >= 0 ? best : end;
  }

  /// Those that reach the top had the least choice: they choose first in the next attempt.
  void promote_highest(std::vector<int>& order, std::int64_t top) const {
    std::stable_partition(order.begin(), order.end(), [&](int i) {
      return lifetimes_[i].offset_bytes + aligned(lifetimes_[i].bytes, alignment_) == top;
    });
  }

  std::vector<Lifetime>& lifetimes_;
  std::int64_t alignment_;
  PlacedTree tree_;
  std::vector<int> neighbours_;
  std::vector<std::pair<std::int64_t, std::int64_t>> taken_;
  std::int64_t looked_at_ = 0;
};

}  // namespace

std::int64_t place_lifetimes(std::vector<Lifetime>& lifetimes, std::int64_t alignment,
                             std::int64_t enough_bytes) {
  if (lifetimes.empty()) return 0;
  return Placer(lifetimes, alignment).run(enough_bytes);
}

std::int64_t largest_held(const std::vector<Lifetime>& lifetimes, std::int64_t alignment) {
  std::vector<std::pair<std::int64_t, std::int64_t>> changes;  // time, bytes; an end stands first
  for (const Lifetime& l : lifetimes) {
    changes.emplace_back(l.begin_ns, aligned(l.bytes, alignment));
    changes.emplace_back(l.end_ns, -aligned(l.bytes, alignment));
  }
  std::sort(changes.begin(), changes.end());
  std::int64_t held = 0, largest = 0;
  for (const auto& [time, bytes] : changes) {
    held += bytes;
    largest = std::max(largest, held);
  }
  return largest;
}

}  // namespace strata::runtime
