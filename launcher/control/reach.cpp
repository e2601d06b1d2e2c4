#include "launcher/control/reach.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace strata::launcher {

std::optional<std::string> Reach::found() {
  const bool is_again = std::exchange(ever_found_, true) && since_ && next_minute_ > 0;
  since_.reset();
  another_.clear();
  if (!is_again) return {};
  return fmt::format("host 0 answers again at {}", where_);
}

std::optional<std::string> Reach::found_another(TimePoint now, const std::string& reason) {
  lost(now, "what answers there is not host 0 of this run: " + reason);
  if (std::exchange(another_, reason) == reason) return {};
  next_minute_ = std::max(next_minute_, 1);
  return fmt::format(
      "what answers at {} is not host 0 of this run: {}; this host waits for the right one up "
      "to {} s",
      where_, reason, limit().count());
}

std::optional<std::string> Reach::complaint(TimePoint now) {
  if (!since_ || now < *since_ + next_words() || has_given_up(now)) return {};
  const auto passed = std::chrono::floor<std::chrono::seconds>(now - *since_);
  next_minute_ = 1 + static_cast<int>(passed / kAgain);
  const std::string why = reason_.empty() ? "" : fmt::format(" ({})", reason_);
  if (ever_found_)
    return fmt::format("host 0 does not answer any more at {}{}: this host waits for it up to {} s",
                       where_, why, limit().count());
  if (passed >= kAgain)
    return fmt::format(
        "host 0 has not answered at {} for {} s{}: it has not started yet, or the run is over; "
        "this host tries again for {} s more",
        where_, passed.count(), why, (limit() - passed).count());
  return fmt::format(
      "host 0 does not answer at {}{}: it has not started yet, or the run is over; this host "
      "tries again for up to {} s",
      where_, why, limit().count());
}

std::string Reach::farewell() const {
  const std::string why = reason_.empty() ? "" : fmt::format(" ({})", reason_);
  if (ever_found_)
    return fmt::format("host 0 has not answered again at {} for {} s{}: this host ends", where_,
                       limit().count(), why);
  return fmt::format(
      "host 0 has not answered at {} for {} s{}: it has not started, or the run is over; this host "
      "ends",
      where_, limit().count(), why);
}

std::optional<Reach::TimePoint> Reach::next_deadline() const {
  if (!since_) return {};
  return *since_ + std::min(next_words(), limit());
}

}  // namespace strata::launcher
