#include "runtime/schedule/place_lifetimes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>

#include "runtime/schedule/held_times.h"
#include "runtime/schedule/placed_list.h"

namespace strata::runtime {
namespace {

/// Says which hole a buffer takes.
enum class Fit : std::uint8_t { tightest, lowest };

/// Finds the place for `bytes` between stretches that are met in order of their begins.
class HoleSearch {
 public:
  HoleSearch(std::int64_t bytes, Fit fit) : bytes_(bytes), fit_(fit) {}

  /// Looks at the hole below the next stretch; returns true if the search has ended.
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

/// Lists the lifetimes held at the same time as each one that has few such neighbours.
class Neighbours {
 public:
  /// Lists no neighbours for lifetimes with more than `most` of them.
  Neighbours(const std::vector<Lifetime>& lifetimes, std::int64_t most) {
    count(lifetimes);
    std::int64_t room = 0;
    for (std::int64_t c : counts_) {
      lists_.push_back({room, room});
      if (c <= most) room += c;
    }
    of_.resize(static_cast<std::size_t>(room));
    std::vector<int> order(lifetimes.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](int a, int b) { return lifetimes[a].begin < lifetimes[b].begin; });
    std::vector<int> listed, others;  // those that may still be held, by whether they have a list
    for (int i : order) {
      const auto has_ended = [&](int j) { return lifetimes[j].end <= lifetimes[i].begin; };
      const bool has_list = counts_[i] <= most;
      std::erase_if(listed, has_ended);
      for (int j : listed) {
        of_[lists_[j].end++] = i;
        if (has_list) of_[lists_[i].end++] = j;
      }
      if (has_list) {
        std::erase_if(others, has_ended);
        for (int j : others) of_[lists_[i].end++] = j;
      }
      (has_list ? listed : others).push_back(i);
    }
  }

  /// Returns how many others are held at the same time as `lifetime`.
  [[nodiscard]] std::int64_t count(int lifetime) const { return counts_[lifetime]; }
  [[nodiscard]] std::span<const int> of(int lifetime) const {
    return std::span(of_).subspan(lists_[lifetime].begin,
                                  lists_[lifetime].end - lists_[lifetime].begin);
  }

 private:
  void count(const std::vector<Lifetime>& lifetimes) {
    std::vector<std::int64_t> begins, ends;
    for (const Lifetime& l : lifetimes) {
      begins.push_back(l.begin);
      ends.push_back(l.end);
    }
    std::sort(begins.begin(), begins.end());
    std::sort(ends.begin(), ends.end());
    for (const Lifetime& l : lifetimes)
      counts_.push_back((std::lower_bound(begins.begin(), begins.end(), l.end) - begins.begin()) -
                        (std::upper_bound(ends.begin(), ends.end(), l.begin) - ends.begin()) - 1);
  }

  struct List {
    std::int64_t begin, end;  ///< indices into of_
  };
  std::vector<std::int64_t> counts_;
  std::vector<List> lists_;
  std::vector<int> of_;
};

/// Lifetimes with a larger rank are placed first.
using Rank = double (*)(const Lifetime&);

double duration(const Lifetime& l) { return static_cast<double>(l.end - l.begin); }
double by_area(const Lifetime& l) { return static_cast<double>(l.bytes) * duration(l); }
double by_bytes(const Lifetime& l) { return static_cast<double>(l.bytes); }
double by_begin(const Lifetime& l) { return -static_cast<double>(l.begin); }
double by_end(const Lifetime& l) { return static_cast<double>(l.end); }

/// Says which lifetimes choose first in the next attempt, since they had the least choice.
enum class Promoted : std::uint8_t {
  highest,    ///< lifetimes that reach the top
  above,      ///< lifetimes that end above what would be enough
  half_above  ///< lifetimes above the middle of `enough` and top; they overtake half of the rest
};

/// The start of a course of attempts, and how it goes on.
struct Start {
  Rank rank;
  Fit fit;
  Promoted promoted = Promoted::highest;
  /// True: those held when most bytes are held come first, whatever their rank.
  bool by_peak = false;
};

/// Each order wins somewhere. Those that win most often come first: activations are nested (area,
/// duration), and pieces of state of one size come and go all the time (begin).
constexpr Start kStarts[] = {
    {by_area, Fit::tightest},
    {by_begin, Fit::lowest},
    {by_bytes, Fit::tightest},
    {duration, Fit::tightest},
    {by_end, Fit::lowest},
    {by_area, Fit::lowest},
    {by_begin, Fit::tightest},
    {by_bytes, Fit::lowest},
    {duration, Fit::lowest},
    {by_end, Fit::tightest},
    {by_begin, Fit::lowest, Promoted::above, true},
    {by_bytes, Fit::lowest, Promoted::half_above, true},
    {duration, Fit::tightest, Promoted::half_above, true},
    {by_begin, Fit::lowest, Promoted::half_above},
    {by_bytes, Fit::tightest, Promoted::half_above},
    {by_end, Fit::tightest, Promoted::above},
};

/// Limits on what is tried.
struct Limits {
  /// Number of placed lifetimes looked at after which nothing more is tried: bounds the time of
  /// large problems.
  std::int64_t effort;
  std::size_t starts;
  int last_round;  ///< attempts per course in the last round
};
constexpr Limits kOnce{0, 1, 0};
constexpr Limits kRough{8'000'000, 10, 11};
constexpr Limits kQuick{24'000'000, 10, 11}, kThorough{96'000'000, std::size(kStarts), 88};
/// Starts that get a turn however large the problem is.
constexpr std::size_t kTurns = 3;
/// Attempts per course before the worse half ends.
constexpr int kFirstRound = 11;
/// A neighbour that is found and sorted costs as much as this many placed lifetimes looked at.
constexpr std::int64_t kSortedNeighbour = 32;
/// Largest number of neighbours listed per lifetime for all attempts: bounds the lists' memory.
constexpr std::int64_t kMostListed = 256;

std::int64_t highest_top(const std::vector<Lifetime>& lifetimes, std::int64_t alignment) {
  std::int64_t top = 0;
  for (const Lifetime& l : lifetimes)
    if (l.is_placed) top = std::max(top, l.offset_bytes + aligned(l.bytes, alignment));
  return top;
}

class Placer {
 public:
  Placer(std::vector<Lifetime>& lifetimes, std::int64_t alignment, const Limits& limits)
      : lifetimes_(lifetimes),
        alignment_(alignment),
        limits_(limits),
        neighbours_(lifetimes, std::min(kMostListed, static_cast<std::int64_t>(lifetimes.size()) /
                                                         kSortedNeighbour)),
        attempt_(lifetimes.size(), 0),
        times_(number_times(lifetimes)) {}

  std::int64_t run(std::int64_t enough) {
    enough_ = std::max(enough, largest_held(lifetimes_, alignment_));
    std::vector<Course> courses;
    for (const Start& start : std::span(kStarts).first(limits_.starts)) {
      if (is_enough() || (courses.size() >= kTurns && looked_at_ > limits_.effort)) break;
      courses.push_back({sorted_by(start), start, 0});
      attempt(courses.back());
    }
    // The best courses go on: first all, then half as many in each round.
    for (int more = kFirstRound; more <= limits_.last_round; more *= 2) {
      std::stable_sort(courses.begin(), courses.end(),
                       [](const Course& a, const Course& b) { return a.bytes < b.bytes; });
      if (more > kFirstRound) courses.resize((courses.size() + 1) / 2);
      for (Course& course : courses)
        for (int again = 0; again < more && !is_enough() && looked_at_ <= limits_.effort; ++again)
          attempt(course);
    }
    for (std::size_t i = 0; i < best_.size(); ++i) lifetimes_[i].offset_bytes = best_[i];
    return least_;
  }

 private:
  /// Attempts from one start, each learning from the one before.
  struct Course {
    std::vector<int> order;
    Start start;
    std::int64_t bytes;  ///< result of the best attempt; 0: none
  };

  [[nodiscard]] bool is_enough() const { return least_ >= 0 && least_ <= enough_; }

  void attempt(Course& course) {
    const std::int64_t bytes = place_in_order(course.order, course.start.fit);
    promote(course, bytes);
    if (course.bytes == 0 || bytes < course.bytes) course.bytes = bytes;
    if (least_ >= 0 && bytes >= least_) return;
    least_ = bytes;
    best_.clear();
    for (const Lifetime& l : lifetimes_) best_.push_back(l.offset_bytes);
  }

  std::vector<int> sorted_by(const Start& start) {
    if (start.by_peak && peak_.empty()) find_peaks();
    struct Ranked {
      std::int64_t peak;
      double rank;
      int lifetime;
    };
    std::vector<Ranked> ranked;
    ranked.reserve(lifetimes_.size());
    for (std::size_t i = 0; i < lifetimes_.size(); ++i)
      if (!lifetimes_[i].is_placed)
        ranked.push_back(
            {start.by_peak ? peak_[i] : 0, start.rank(lifetimes_[i]), static_cast<int>(i)});
    std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
      return a.peak != b.peak ? a.peak > b.peak : a.rank > b.rank;
    });
    std::vector<int> order;
    order.reserve(ranked.size());
    for (const Ranked& one : ranked) order.push_back(one.lifetime);
    return order;
  }

  /// Finds for each lifetime the most bytes that are held while it is.
  void find_peaks() {
    std::vector<std::int64_t> held(2 * lifetimes_.size(), 0);
    for (std::size_t i = 0; i < lifetimes_.size(); ++i) {
      const std::int64_t bytes = aligned(lifetimes_[i].bytes, alignment_);
      held[times_[i].begin] += bytes;
      held[times_[i].end] -= bytes;
    }
    std::partial_sum(held.begin(), held.end(), held.begin());
    for (const HeldTimes& t : times_)
      peak_.push_back(*std::max_element(held.begin() + t.begin, held.begin() + t.end));
  }

  void add(int lifetime) {
    attempt_[lifetime] = attempts_;
    list_.add(times_[lifetime], lifetimes_[lifetime].offset_bytes,
              aligned(lifetimes_[lifetime].bytes, alignment_));
  }

  /// Returns the top. Ends early if it is no better than the best, and no attempt follows that
  /// could learn from it.
  std::int64_t place_in_order(const std::vector<int>& order, Fit fit) {
    ++attempts_;
    list_.clear();
    std::int64_t top = highest_top(lifetimes_, alignment_);
    for (std::size_t i = 0; i < lifetimes_.size(); ++i)
      if (lifetimes_[i].is_placed) add(static_cast<int>(i));
    for (int i : order) {
      const std::int64_t bytes = aligned(lifetimes_[i].bytes, alignment_);
      lifetimes_[i].offset_bytes = find_hole(i, bytes, fit);
      top = std::max(top, lifetimes_[i].offset_bytes + bytes);
      if (least_ >= 0 && top >= least_ && looked_at_ > limits_.effort) break;
      add(i);
    }
    return top;
  }

  std::int64_t find_hole(int lifetime, std::int64_t bytes, Fit fit) {
    HoleSearch search(bytes, fit);
    const std::int64_t count = neighbours_.count(lifetime);
    if (count > kMostListed || (count + 1) * kSortedNeighbour >= list_.size()) {
      looked_at_ += list_.size() + 1;
      list_.for_each_held(times_[lifetime], [&](std::int64_t begin, std::int64_t end) {
        return search.meet(begin, end);
      });
      return search.place();
    }
    taken_.clear();
    for (int other : neighbours_.of(lifetime)) {
      if (attempt_[other] != attempts_) continue;
      const std::int64_t begin = lifetimes_[other].offset_bytes;
      taken_.emplace_back(begin, begin + aligned(lifetimes_[other].bytes, alignment_));
    }
    looked_at_ += kSortedNeighbour * static_cast<std::int64_t>(taken_.size()) + 1;
    std::sort(taken_.begin(), taken_.end());
    for (const auto& [begin, end] : taken_)
      if (search.meet(begin, end)) break;
    return search.place();
  }

  void promote(Course& course, std::int64_t top) {
    const Promoted promoted = course.start.promoted;
    const std::int64_t least = promoted == Promoted::highest ? top - 1
                               : promoted == Promoted::above ? enough_
                                                             : (top + enough_) / 2;
    const auto is_above = [&](int i) {
      return lifetimes_[i].offset_bytes + aligned(lifetimes_[i].bytes, alignment_) > least;
    };
    if (promoted != Promoted::half_above) {
      std::stable_partition(course.order.begin(), course.order.end(), is_above);
      return;
    }
    std::vector<std::pair<std::size_t, int>> turns;
    for (std::size_t k = 0; k < course.order.size(); ++k)
      turns.emplace_back(is_above(course.order[k]) ? k : 2 * k, course.order[k]);
    std::stable_sort(turns.begin(), turns.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t k = 0; k < turns.size(); ++k) course.order[k] = turns[k].second;
  }

  std::vector<Lifetime>& lifetimes_;
  std::int64_t alignment_;
  const Limits& limits_;
  Neighbours neighbours_;
  std::vector<int> attempt_;  ///< one per lifetime: the last attempt that placed it
  int attempts_ = 0;
  PlacedList list_;
  std::vector<HeldTimes> times_;    ///< one per lifetime
  std::vector<std::int64_t> peak_;  ///< one per lifetime, once asked for: most bytes held meanwhile
  std::vector<std::pair<std::int64_t, std::int64_t>> taken_;
  std::int64_t looked_at_ = 0;
  std::int64_t enough_ = 0, least_ = -1;
  std::vector<std::int64_t> best_;  ///< places in the attempt that needs `least_`
};

}  // namespace

std::int64_t place_lifetimes(std::vector<Lifetime>& lifetimes, std::int64_t alignment,
                             std::int64_t enough_bytes, PlaceSearch search) {
  if (std::ranges::all_of(lifetimes, &Lifetime::is_placed))
    return highest_top(lifetimes, alignment);
  const Limits& limits = search == PlaceSearch::once    ? kOnce
                         : search == PlaceSearch::rough ? kRough
                         : search == PlaceSearch::quick ? kQuick
                                                        : kThorough;
  return Placer(lifetimes, alignment, limits).run(enough_bytes);
}

std::int64_t largest_held(const std::vector<Lifetime>& lifetimes, std::int64_t alignment) {
  std::vector<std::pair<std::int64_t, std::int64_t>> changes;  // time, bytes; ends come first
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
