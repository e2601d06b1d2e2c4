#include "train/run/save_retry.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "core/without_numbers.h"

namespace strata::train {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongestPause{15000};
constexpr milliseconds kBetweenLooks{100};  // at signals

std::string seconds_text(SaveRetry::Clock::duration time) {
  const double seconds = std::chrono::duration<double>(time).count();
  return fmt::format("{:.0f} s", std::ceil(std::max(0.0, seconds)));
}

}  // namespace

std::string SaveRetry::time_left() const {
  const Clock::time_point now = Clock::now();
  if (is_asked_to_stop() && stop_->limit_ends() < end_)
    return fmt::format("for {}, which {} leaves", seconds_text(stop_->limit_ends() - now),
                       stop_->signal_name());
  return fmt::format("for {} (--save-retry)", seconds_text(end_ - now));
}

/// A scheduler may send one signal alone, and kill when its own time is over.
std::string SaveRetry::how_it_ends() const {
  const bool is_limited = stop_->limit_ends() != Clock::time_point::max();
  return std::string("a second signal ends it at once") +
         (is_limited ? "" : ", --grace S would end it S seconds after the first");
}

void SaveRetry::failed(const std::string& why, const std::string& lost) {
  lost_ = lost;
  const bool is_first = cause_.empty();
  std::string cause = without_numbers(why);  // free bytes differ from attempt to attempt
  const bool is_same = cause == cause_;
  cause_ = std::move(cause);
  if (is_first) {
    is_answered_ = is_asked_to_stop();
    listeners_.warn(fmt::format(
        "the checkpoint of step {} could not be written: {}; trying again {}: make room, or mend "
        "what is named; if the run ends before, {}{}",
        step_, why, time_left(), lost, is_answered_ ? "; " + how_it_ends() : ""));
  } else if (is_same) {
    listeners_.warn(fmt::format(
        "the checkpoint of step {} still cannot be written, for the same cause; trying again {}",
        step_, time_left()));
  } else {
    listeners_.warn(fmt::format("the checkpoint of step {} cannot be written: {}; trying again {}",
                                step_, why, time_left()));
  }
}

void SaveRetry::answer_signal() {
  if (is_answered_ || !is_asked_to_stop()) return;
  is_answered_ = true;
  listeners_.warn(fmt::format(
      "{}: the run ends once the checkpoint of step {} is written, which is tried {}; if it ends "
      "before, {}; {}",
      stop_->signal_name(), step_, time_left(), lost_, how_it_ends()));
}

void SaveRetry::wait() {
  const Clock::time_point next = std::min(Clock::now() + pause_, end_);
  pause_ = std::min<Clock::duration>(2 * pause_, kLongestPause);
  for (;;) {
    answer_signal();
    const Clock::time_point now = Clock::now();
    if (now >= next) return;
    std::this_thread::sleep_for(std::min<Clock::duration>(kBetweenLooks, next - now));
  }
}

}  // namespace strata::train
