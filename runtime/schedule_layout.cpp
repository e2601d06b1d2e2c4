#include "runtime/schedule_layout.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

namespace strata::runtime {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

/// Which hole a buffer takes.
enum class Fit : std::uint8_t { tightest, lowest };

/// The place for `bytes` between stretches that are met in order of their begins.
class HoleSearch {
 public:
  HoleSearch(std::int64_t bytes, Fit fit) : bytes_(bytes), fit_(fit) {}

  /// Looks at the hole below the next stretch; returns whether the search has ended.
  bool meet(std::int64_t begin, std::int64_t end) {
    const std::int64_t hole = begin - end_;
    if (hole >= bytes_ && (best_ < 0 || hole < best_hole_)) {
      best_ = end_;
      best_hole_ = hole;
      if (fit_ == Fit::lowest || hole == bytes_) return true;
    }
    end_ = std::max(end_, end);
    return false;
  }

  [[nodiscard]] std::int64_t place() const { return best_ >= 0 ? best_ : end_; }

 private:
  std::int64_t bytes_;
  Fit fit_;
  std::int64_t end_ = 0, best_ = -1, best_hole_ = 0;
};

/// Lifetimes with a place, found by time: a tree over all lifetimes by begin, whose nodes know the
/// latest end of the placed ones below. For lifetimes with few neighbours among many.
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

/// Lifetimes with a place, by place: looked through from the bottom, so that nothing is sorted for
/// a hole. For lifetimes with many neighbours.
class PlacedList {
 public:
  void clear() { placed_.clear(); }
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(placed_.size()); }

  void add(const Lifetime& lifetime, std::int64_t bytes) {
    const Placed added{lifetime.offset_bytes, lifetime.offset_bytes + bytes, lifetime.begin_ns,
                       lifetime.end_ns};
    placed_.insert(std::upper_bound(placed_.begin(), placed_.end(), added), added);
  }

  /// Shows `search` those that are held at the same time as `wanted`. Returns how many there are,
  /// those behind the end of the search, too.
  std::int64_t search(const Lifetime& wanted, HoleSearch& search) const {
    std::int64_t met = 0;
    auto at = placed_.begin();
    for (bool done = false; at != placed_.end() && !done; ++at) {
      // No branch on what nothing could foresee: a stretch below all others ends no hole.
      const std::int64_t mask = -std::int64_t{at->meets(wanted)};
      met -= mask;
      done = search.meet((at->begin & mask) + (kNever / 2 & ~mask), at->end & mask);
    }
    for (; at != placed_.end(); ++at) met += at->meets(wanted);
    return met;
  }

 private:
  struct Placed {
    std::int64_t begin, end;  ///< bytes
    std::int64_t begin_ns, end_ns;
    [[nodiscard]] bool meets(const Lifetime& wanted) const {
      return (end_ns > wanted.begin_ns) & (begin_ns < wanted.end_ns);
    }
    bool operator<(const Placed& other) const {
      return begin != other.begin ? begin < other.begin : end < other.end;
    }
  };
  std::vector<Placed> placed_;
};

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
/// A neighbour that is found and sorted costs as much as so many placed lifetimes looked through.
constexpr std::int64_t kSortedNeighbour = 32;

class Placer {
 public:
  Placer(std::vector<Lifetime>& lifetimes, std::int64_t alignment)
      : lifetimes_(lifetimes), alignment_(alignment), tree_(lifetimes) {
    count_neighbours();
  }

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

  /// All lifetimes held at the same time as each, placed or not.
  void count_neighbours() {
    std::vector<std::int64_t> begins, ends;
    for (const Lifetime& l : lifetimes_) {
      begins.push_back(l.begin_ns);
      ends.push_back(l.end_ns);
    }
    std::sort(begins.begin(), begins.end());
    std::sort(ends.begin(), ends.end());
    for (const Lifetime& l : lifetimes_)
      neighbour_count_.push_back(
          (std::lower_bound(begins.begin(), begins.end(), l.end_ns) - begins.begin()) -
          (std::upper_bound(ends.begin(), ends.end(), l.begin_ns) - ends.begin()));
  }

  void add(int lifetime) {
    tree_.add(lifetime);
    list_.add(lifetimes_[lifetime], aligned(lifetimes_[lifetime].bytes, alignment_));
  }

  std::int64_t place_in_order(const std::vector<int>& order, Fit fit) {
    tree_.clear();
    list_.clear();
    std::int64_t top = 0;
    for (std::size_t i = 0; i < lifetimes_.size(); ++i) {
      if (!lifetimes_[i].is_placed) continue;
      top = std::max(top, lifetimes_[i].offset_bytes + aligned(lifetimes_[i].bytes, alignment_));
      add(static_cast<int>(i));
    }
    for (int i : order) {
      const std::int64_t bytes = aligned(lifetimes_[i].bytes, alignment_);
      lifetimes_[i].offset_bytes = find_hole(i, bytes, fit);
      top = std::max(top, lifetimes_[i].offset_bytes + bytes);
      add(i);
    }
    return top;
  }

  std::int64_t find_hole(int lifetime, std::int64_t bytes, Fit fit) {
    HoleSearch search(bytes, fit);
    if (neighbour_count_[lifetime] * kSortedNeighbour >= list_.size()) {
      looked_at_ += list_.search(lifetimes_[lifetime], search) + 1;
      return search.place();
    }
    neighbours_.clear();
    tree_.overlapping(lifetime, neighbours_);
    looked_at_ += static_cast<std::int64_t>(neighbours_.size()) + 1;
    taken_.clear();
    for (int other : neighbours_) {
      const std::int64_t begin = lifetimes_[other].offset_bytes;
      taken_.emplace_back(begin, begin + aligned(lifetimes_[other].bytes, alignment_));
    }
    std::sort(taken_.begin(), taken_.end());
    for (const auto& [begin, end] : taken_)
      if (search.meet(begin, end)) break;
    return search.place();
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
  PlacedList list_;
  std::vector<std::int64_t> neighbour_count_;
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
