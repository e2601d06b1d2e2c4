// Signals that several hosts are sent for one reason, told as one.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>

namespace strata::launcher {

/// Equal signals of several sources within this time are one: a scheduler signals every host of a
/// job, and ranks take a second SIGTERM as haste.
inline constexpr std::chrono::milliseconds kSameSignal{10'000};

class SignalFilter {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// False for a signal that the source has told of before, on a connection that broke: `index`
  /// counts those of this number.
  bool is_news(const std::string& source, int number, int index) {
    int& heard = heard_[{source, number}];
    if (index < heard) return false;
    heard = index + 1;
    return true;
  }
  /// False for a signal that another source has had within kSameSignal.
  bool is_first(TimePoint now, const std::string& source, int number) {
    const auto last = last_.find(number);
    if (last != last_.end() && last->second.source != source &&
        now < last->second.when + kSameSignal)
      return false;
    last_[number] = {now, source};
    return true;
  }

 private:
  struct Taken {
    TimePoint when{};
    std::string source;
  };
  std::map<int, Taken> last_;                         ///< by number
  std::map<std::pair<std::string, int>, int> heard_;  ///< how many, by source and number
};

}  // namespace strata::launcher
