// Time of a simulated run: events in the order of their times, and clocks of hosts, which differ.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

namespace strata::launcher::simulation {

using Time = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;
using Callback = std::function<void()>;

/// Calls what is due, soonest first; events of one time in the order in which they were added.
class EventQueue {
 public:
  [[nodiscard]] Time now() const { return now_; }
  void at(Time time, Callback callback);
  void after(Duration delay, Callback callback) { at(now_ + delay, std::move(callback)); }
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  void run_next();

 private:
  struct Entry {
    Time time;
    std::uint64_t number;
    Callback callback;
  };
  static bool is_later(const Entry& a, const Entry& b);

  Time now_{};
  std::uint64_t added_ = 0;
  std::vector<Entry> heap_;
};

/// A clock that began at another time and goes at another rate than the simulation's.
struct HostClock {
  Duration offset{};
  std::int64_t parts_per_million = 0;  ///< that it gains; negative: it is slow

  [[nodiscard]] Time read(Time now) const;
  /// Returns the first time at which the clock shows `local`.
  [[nodiscard]] Time when(Time local) const;
};

}  // namespace strata::launcher::simulation
