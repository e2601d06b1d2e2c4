#include "runtime/schedule/place_by_ejection.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "runtime/schedule/held_times.h"
#include "runtime/schedule/held_with.h"

namespace strata::runtime {
namespace {

/// Holds the bottoms, or the tops, of all lifetimes that lie in the arena, in order.
class Edges {
 public:
  struct Edge {
    std::int64_t at;  ///< offset in bytes
    std::int32_t lifetime;
    auto operator<=>(const Edge&) const = default;
  };

  void clear() {
    edges_.clear();
    begins_.assign(kHeldBlock, kNeverHeld.begin);
    ends_.assign(kHeldBlock, kNeverHeld.end);
  }
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(edges_.size()); }

  void add(const Edge& edge, const HeldTimes& times) {
    const auto place = find(edge);
    edges_.insert(edges_.begin() + place, edge);
    begins_.insert(begins_.begin() + place, times.begin);
    ends_.insert(ends_.begin() + place, times.end);
  }
  void remove(const Edge& edge) {
    const auto place = find(edge);
    edges_.erase(edges_.begin() + place);
    begins_.erase(begins_.begin() + place);
    ends_.erase(ends_.begin() + place);
  }

  /// Fills `met` with the edges of lifetimes that are held at the same time.
  void meet(const HeldTimes& times, std::vector<Edge>& met) const {
    met.clear();
    for (std::size_t i = 0; i < edges_.size(); i += kHeldBlock)
      for (std::uint64_t held = held_with_(times, begins_.data() + i, ends_.data() + i); held != 0;
           held &= held - 1)
        met.push_back(edges_[i + static_cast<std::size_t>(std::countr_zero(held))]);
  }

 private:
  [[nodiscard]] std::ptrdiff_t find(const Edge& edge) const {
    return std::lower_bound(edges_.begin(), edges_.end(), edge) - edges_.begin();
  }

  HeldWith held_with_ = held_with();
  std::vector<Edge> edges_;
  // Times of each edge, and then a block that is never held.
  std::vector<std::int32_t> begins_, ends_;
};

/// Says which lifetimes choose a place first.
enum class First : std::uint8_t { earliest, longest, largest_area };

/// One way of looking for places.
struct Course {
  First first;
  int large_percent;  ///< share of the largest: placed from the top
};

/// Each course wins somewhere. With `earliest`, both ends of the arena act as stacks.
constexpr Course kCourses[] = {
    {First::earliest, 30}, {First::longest, 30},      {First::earliest, 15},
    {First::longest, 15},  {First::largest_area, 30}, {First::earliest, 60},
};

/// An attempt's goal: the percentage of the excess over `enough` that may remain.
constexpr std::int64_t kLeft[] = {40, 70, 90};
/// An attempt ends after this many placements per lifetime without a new minimum of waiting ones.
constexpr std::size_t kEjectionPatience = 1;
/// Number of edges looked at after which all attempts end: bounds the time.
constexpr std::int64_t kEffort = 300'000'000;
/// An edge that is met costs as much as this many that are looked at.
constexpr std::int64_t kMetEdge = 4;

class Ejection {
 public:
  Ejection(std::vector<Lifetime>& lifetimes, std::int64_t alignment)
      : lifetimes_(lifetimes),
        alignment_(alignment),
        times_(number_times(lifetimes)),
        wants_(lifetimes.size()) {
    for (const Lifetime& l : lifetimes) bytes_.push_back(aligned(l.bytes, alignment));
    largest_ = *std::max_element(bytes_.begin(), bytes_.end());
  }

  std::int64_t run(std::int64_t arena, std::int64_t enough) {
    std::vector<Lifetime> best = lifetimes_;
    for (const std::int64_t left : kLeft)
      for (const Course& course : kCourses)
        while (arena > enough && looked_at_ < kEffort) {
          const std::int64_t less =
              enough + (arena - enough) / 100 * left / alignment_ * alignment_;
          if (!place_within(less, course)) break;
          arena = less;
          best = lifetimes_;
        }
    lifetimes_ = std::move(best);
    return arena;
  }

 private:
  /// The cost of driving out a lifetime that may not move.
  static constexpr std::int64_t kNever = std::int64_t{1} << 40;

  bool place_within(std::int64_t capacity, const Course& course) {
    capacity_ = capacity;
    large_bytes_ = largest_ / 100 * course.large_percent;
    if (!begin(course)) return false;
    std::size_t fewest = waiting_.size(), since = 0;
    while (!waiting_.empty()) {
      if (looked_at_ >= kEffort || ++since > kEjectionPatience * lifetimes_.size()) return false;
      const int next = waiting_.back();
      waiting_.pop_back();
      if (!place(next)) return false;
      if (waiting_.size() >= fewest) continue;
      fewest = waiting_.size();
      since = 0;
    }
    return true;
  }

  /// Lets all lifetimes wait that are not placed. False if a placed one is out of bounds.
  bool begin(const Course& course) {
    bottoms_.clear();
    tops_.clear();
    waiting_.clear();
    for (int i = 0; i < static_cast<int>(lifetimes_.size()); ++i) {
      wants_[i] = lifetimes_[i].is_placed ? kNever : 1;
      if (!lifetimes_[i].is_placed)
        waiting_.push_back(i);
      else if (lifetimes_[i].offset_bytes + bytes_[i] > capacity_)
        return false;
      else
        add(i);
    }
    std::stable_sort(waiting_.begin(), waiting_.end(), [&](int a, int b) {
      const std::int64_t ra = rank(a, course.first), rb = rank(b, course.first);
      return ra != rb ? ra < rb : times_[a].begin > times_[b].begin;
    });
    return true;
  }

  /// Lifetimes with a larger rank choose first.
  [[nodiscard]] std::int64_t rank(int i, First first) const {
    const std::int64_t duration = times_[i].end - times_[i].begin;
    switch (first) {
      case First::longest:  // durations within a factor of 8 rank alike
        return std::bit_width(static_cast<std::uint64_t>(duration)) / 3;
      case First::largest_area:
        return duration * bytes_[i];
      case First::earliest:
        break;
    }
    return 0;
  }

  /// Places `i`, driving others out if need be. False if only lifetimes that may not move block it.
  bool place(int i) {
    bottoms_.meet(times_[i], met_bottoms_);
    tops_.meet(times_[i], met_tops_);
    looked_at_ += bottoms_.size() + tops_.size() +
                  kMetEdge * static_cast<std::int64_t>(met_bottoms_.size() + met_tops_.size());
    const Place place = cheapest(i);
    if (place.wants >= kNever) return false;
    if (place.wants > 0) {
      ++wants_[i];
      for (const Edges::Edge& other : met_bottoms_) {
        const int j = other.lifetime;
        if (other.at >= place.at + bytes_[i] || other.at + bytes_[j] <= place.at) continue;
        remove(j);
        waiting_.push_back(j);
      }
    }
    lifetimes_[i].offset_bytes = place.at;
    add(i);
    return true;
  }

  struct Place {
    std::int64_t at, wants;
  };

  /// Returns the lowest place that drives out least; for a large lifetime the highest.
  [[nodiscard]] Place cheapest(int i) const {
    const std::int64_t bytes = bytes_[i];
    const bool large = bytes >= large_bytes_;
    Place best{0, -1};
    std::int64_t wants = 0;  // sum over those that overlap the bytes above `at`
    std::size_t below = 0, above = 0;
    for (std::int64_t at = 0; at + bytes <= capacity_;) {
      for (; below < met_bottoms_.size() && met_bottoms_[below].at < at + bytes; ++below)
        wants += wants_[met_bottoms_[below].lifetime];
      if (best.wants < 0 || wants < best.wants || (large && wants == best.wants)) {
        const std::int64_t end =
            below < met_bottoms_.size() ? std::min(met_bottoms_[below].at, capacity_) : capacity_;
        best = {large ? std::max(at, end - bytes) : at, wants};
      }
      if (above == met_tops_.size()) break;
      at = met_tops_[above].at;
      for (; above < met_tops_.size() && met_tops_[above].at == at; ++above)
        wants -= wants_[met_tops_[above].lifetime];
    }
    return best;
  }

  void add(int i) {
    const std::int64_t at = lifetimes_[i].offset_bytes;
    bottoms_.add({at, i}, times_[i]);
    tops_.add({at + bytes_[i], i}, times_[i]);
  }
  void remove(int i) {
    const std::int64_t at = lifetimes_[i].offset_bytes;
    bottoms_.remove({at, i});
    tops_.remove({at + bytes_[i], i});
  }

  std::vector<Lifetime>& lifetimes_;
  std::int64_t alignment_;
  std::vector<HeldTimes> times_;     ///< one per lifetime
  std::vector<std::int64_t> bytes_;  ///< one per lifetime, aligned
  std::int64_t largest_ = 0;         ///< largest of bytes_
  std::vector<std::int64_t> wants_;  ///< one per lifetime: how often it drove out others, plus 1
  std::vector<int> waiting_;         ///< lifetimes without a place; the last one is next
  Edges bottoms_, tops_;
  std::vector<Edges::Edge> met_bottoms_, met_tops_;  ///< edges that meet the current lifetime
  std::int64_t capacity_ = 0, large_bytes_ = 0;      ///< limits of the current attempt
  std::int64_t looked_at_ = 0;
};

}  // namespace

std::int64_t place_by_ejection(std::vector<Lifetime>& lifetimes, std::int64_t alignment,
                               std::int64_t arena_bytes, std::int64_t enough_bytes) {
  if (lifetimes.empty()) return arena_bytes;
  const std::int64_t enough =
      aligned(std::max(enough_bytes, largest_held(lifetimes, alignment)), alignment);
  return Ejection(lifetimes, alignment).run(arena_bytes, enough);
}

}  // namespace strata::runtime
