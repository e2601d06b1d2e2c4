#include "runtime/place_lifetimes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
                     [&](int a, int b) { return lifetimes[a].begin < lifetimes[b].begin; });
    for (std::size_t i = 0; i < by_begin_.size(); ++i) rank_[by_begin_[i]] = static_cast<int>(i);
    while (leaves_ < by_begin_.size()) leaves_ *= 2;
    latest_end_.assign(2 * leaves_, kNever);
  }

  void clear() { std::fill(latest_end_.begin(), latest_end_.end(), kNever); }

  void add(int lifetime) {
    std::size_t node = leaves_ + static_cast<std::size_t>(rank_[lifetime]);
    for (; node >= 1; node /= 2)
      latest_end_[node] = std::max(latest_end_[node], lifetimes_[lifetime].end);
  }

  /// Appends the placed lifetimes that are held at the same time as `lifetime`.
  void overlapping(int lifetime, std::vector<int>& found) const {
    const Lifetime& wanted = lifetimes_[lifetime];
    visit(1, 0, leaves_, wanted.begin, wanted.end, found);
  }

 private:
  void visit(std::size_t node, std::size_t from, std::size_t to, std::int64_t begin,
             std::int64_t end, std::vector<int>& found) const {
    if (latest_end_[node] <= begin || from >= by_begin_.size()) return;
    if (lifetimes_[by_begin_[from]].begin >= end) return;
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
  /// A lifetime, times as their numbers in the order of all times.
  struct Times {
    std::int32_t begin, end;
  };

  void clear() {
    places_.clear();
    times_.clear();
  }
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(places_.size()); }

  void add(const Times& times, std::int64_t offset_bytes, std::int64_t bytes) {
    const Place place{offset_bytes, offset_bytes + bytes};
    const auto at = std::upper_bound(places_.begin(), places_.end(), place);
    times_.insert(times_.begin() + (at - places_.begin()), times);
    places_.insert(at, place);
  }

  /// Shows `search` those that are held at the same time as `wanted`.
  void search(const Times& wanted, HoleSearch& search) {
    met_.resize(places_.size() + 1);
    std::size_t count = 0;
    for (std::size_t i = 0; i < times_.size(); ++i) {  // without a branch that nothing foresees
      met_[count] = i;
      count +=
          std::size_t{times_[i].end > wanted.begin} & std::size_t{times_[i].begin < wanted.end};
    }
    for (std::size_t k = 0; k < count; ++k)
      if (search.meet(places_[met_[k]].bottom, places_[met_[k]].top)) return;
  }

 private:
  struct Place {
    std::int64_t bottom, top;  ///< bytes
    bool operator<(const Place& other) const {
      return bottom != other.bottom ? bottom < other.bottom : top < other.top;
    }
  };
  std::vector<Place> places_;
  std::vector<Times> times_;      ///< of each place
  std::vector<std::size_t> met_;  ///< places beside `wanted`
};

/// Lifetimes with a larger rank are placed first.
using Rank = double (*)(const Lifetime&);

double duration(const Lifetime& l) { return static_cast<double>(l.end - l.begin); }
double by_area(const Lifetime& l) { return static_cast<double>(l.bytes) * duration(l); }
double by_bytes(const Lifetime& l) { return static_cast<double>(l.bytes); }
double by_begin(const Lifetime& l) { return -static_cast<double>(l.begin); }
double by_end(const Lifetime& l) { return static_cast<double>(l.end); }

/// How a course of attempts begins.
struct Start {
  Rank rank;
  Fit fit;
};

/// Each order wins somewhere. Those that win most often stand first: activations are nested (area,
/// duration), and pieces of state of one size come and go all the time (begin).
constexpr Start kStarts[] = {
    {by_area, Fit::tightest},  {by_begin, Fit::lowest}, {by_bytes, Fit::tightest},
    {duration, Fit::tightest}, {by_end, Fit::lowest},   {by_area, Fit::lowest},
    {by_begin, Fit::tightest}, {by_bytes, Fit::lowest}, {duration, Fit::lowest},
    {by_end, Fit::tightest},
};

/// Placed lifetimes looked at before nothing more is tried: what bounds the time of large problems.
constexpr std::int64_t kEffort = 24'000'000;
/// Starts that have a turn however large the problem is.
constexpr std::size_t kTurns = 3;
constexpr int kAttemptsPerOrder = 12;
/// A neighbour that is found and sorted costs as much as so many placed lifetimes looked through.
constexpr std::int64_t kSortedNeighbour = 32;

class Placer {
 public:
  Placer(std::vector<Lifetime>& lifetimes, std::int64_t alignment)
      : lifetimes_(lifetimes), alignment_(alignment), tree_(lifetimes) {
    number_times();
    count_neighbours();
  }

  std::int64_t run(std::int64_t enough) {
    enough_ = std::max(enough, largest_held(lifetimes_, alignment_));
    std::vector<Course> courses;
    for (const Start& start : kStarts) {
      if (is_enough() || (courses.size() >= kTurns && looked_at_ > kEffort)) break;
      courses.push_back({sorted_by(start.rank), start.fit, 0});
      attempt(courses.back());
      if (courses.back().order.empty()) return least_;  // all have their places
    }
    std::stable_sort(courses.begin(), courses.end(),
                     [](const Course& a, const Course& b) { return a.bytes < b.bytes; });
    for (Course& course : courses)
      for (int again = 1; again < kAttemptsPerOrder && !is_enough() && looked_at_ <= kEffort;
           ++again)
        attempt(course);
    for (std::size_t i = 0; i < best_.size(); ++i) lifetimes_[i].offset_bytes = best_[i];
    return least_;
  }

 private:
  /// Attempts that learn from one another, from one start.
  struct Course {
    std::vector<int> order;
    Fit fit;
    std::int64_t bytes;  ///< of the last attempt
  };

  [[nodiscard]] bool is_enough() const { return least_ >= 0 && least_ <= enough_; }

  void attempt(Course& course) {
    course.bytes = place_in_order(course.order, course.fit);
    promote_highest(course.order, course.bytes);
    if (least_ >= 0 && course.bytes >= least_) return;
    least_ = course.bytes;
    best_.clear();
    for (const Lifetime& l : lifetimes_) best_.push_back(l.offset_bytes);
  }

  std::vector<int> sorted_by(Rank rank) const {
    std::vector<int> order;
    for (std::size_t i = 0; i < lifetimes_.size(); ++i)
      if (!lifetimes_[i].is_placed) order.push_back(static_cast<int>(i));
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return rank(lifetimes_[a]) > rank(lifetimes_[b]); });
    return order;
  }

  void number_times() {
    std::vector<std::int64_t> times;
    for (const Lifetime& l : lifetimes_) times.insert(times.end(), {l.begin, l.end});
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    const auto number = [&](std::int64_t time) {
      return static_cast<std::int32_t>(std::lower_bound(times.begin(), times.end(), time) -
                                       times.begin());
    };
    for (const Lifetime& l : lifetimes_) times_.push_back({number(l.begin), number(l.end)});
  }

  /// All lifetimes held at the same time as each, placed or not.
  void count_neighbours() {
    std::vector<std::int64_t> begins, ends;
    for (const Lifetime& l : lifetimes_) {
      begins.push_back(l.begin);
      ends.push_back(l.end);
    }
    std::sort(begins.begin(), begins.end());
    std::sort(ends.begin(), ends.end());
    for (const Lifetime& l : lifetimes_)
      neighbour_count_.push_back(
          (std::lower_bound(begins.begin(), begins.end(), l.end) - begins.begin()) -
          (std::upper_bound(ends.begin(), ends.end(), l.begin) - ends.begin()));
  }

  void add(int lifetime) {
    tree_.add(lifetime);
    list_.add(times_[lifetime], lifetimes_[lifetime].offset_bytes,
              aligned(lifetimes_[lifetime].bytes, alignment_));
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
      looked_at_ += list_.size() + 1;
      list_.search(times_[lifetime], search);
      return search.place();
    }
    neighbours_.clear();
    tree_.overlapping(lifetime, neighbours_);
    looked_at_ += kSortedNeighbour * static_cast<std::int64_t>(neighbours_.size()) + 1;
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
  std::vector<PlacedList::Times> times_;  ///< of each lifetime
  std::vector<std::int64_t> neighbour_count_;
  std::vector<int> neighbours_;
  std::vector<std::pair<std::int64_t, std::int64_t>> taken_;
  std::int64_t looked_at_ = 0;
  std::int64_t enough_ = 0, least_ = -1;
  std::vector<std::int64_t> best_;  ///< places of the attempt that needs `least_`
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
    changes.emplace_back(l.begin, aligned(l.bytes, alignment));
    changes.emplace_back(l.end, -aligned(l.bytes, alignment));
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
